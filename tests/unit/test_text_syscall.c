/* SPDX-License-Identifier: MIT */
/* Beside what test_text_format.c shows: how single values read, for parameter names of every kind. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/text_format.h"

/* An architecture with two calls: one that has six parameters of the given names, and one without any. */
static char *call_text(const char *params, int64_t nr, const uint64_t *args, unsigned args_differ)
{
	const struct syscall_info calls[] = {{.name = "call", .args = params}, {.name = "nothing", .args = ""}};
	const struct arch arch = {.syscalls = calls, .nsyscalls = 2};
	struct snap_syscall call = {.state = SYSCALL_IN, .nr = nr};
	char *text = NULL;
	size_t len;
	struct text t = {.out = open_memstream(&text, &len)};

	assert_non_null(t.out);
	for (unsigned i = 0; i < 6; i++)
		call.args[i] = args[i];
	text_syscall(&t, &arch, &call, args_differ);
	fclose(t.out);
	return text;
}

static void expect(const char *params, const char *want, const uint64_t *args, unsigned args_differ)
{
	char *text = call_text(params, 0, args, args_differ);

	assert_string_equal(text, want);
	free(text);
}

#define EXPECT(params, want, ...) expect(params, want, (const uint64_t[6]){__VA_ARGS__}, 0)

static void test_numbers(void **state)
{
	EXPECT("fd,fd,fd,fd", "call(fd=0, fd=-1, fd=-1, fd=100000)", 0, UINT32_MAX, UINT64_MAX, 100000);
	EXPECT("upid,timeout,fildes", "call(upid=-5, timeout=-1, fildes=3)", (uint64_t)-5, UINT32_MAX, 3);
	EXPECT("timeout", "call(timeout=0x7ffc00001000)", UINT64_C(0x7ffc00001000)); /* some are pointers */
	EXPECT("fd", "call(fd=-100000)", (uint32_t)-100000);
}

static void test_sizes(void **state)
{
	EXPECT("count,len,size,vlen", "call(count=4194304, len=65536, size=0, vlen=4294967296)", 4194304, 65536, 0,
	       UINT64_C(1) << 32);
	EXPECT("count", "call(count=-1)", UINT64_MAX);
}

static void test_bits(void **state)
{
	EXPECT("flags,op,prot,mask,cmd,oflag", "call(flags=0x1, op=0x80, prot=0, mask=0x1ff, cmd=0x5401, oflag=-1)", 1,
	       0x80, 0, 0x1ff, 0x5401, UINT32_MAX);
	EXPECT("flags", "call(flags=0x8000000000000000)", UINT64_C(1) << 63);
}

/* Where the name does not tell, the value does: small ones are numbers, large ones addresses. */
static void test_guesses(void **state)
{
	EXPECT("a,b,c,d,e,f", "call(a=0, b=65535, c=0x10000, d=0x7f0000000000, e=-4096, f=-22)", 0, 65535, 65536,
	       UINT64_C(0x7f0000000000), (uint64_t)-4096, (uint32_t)-22);
	EXPECT("a,b", "call(a=0xffffffffffffefff, b=0xffffefff)", (uint64_t)-4097, (uint32_t)-4097);
}

/* The end of the name counts, and the whole of it. */
static void test_suffixes(void **state)
{
	EXPECT("epfd,f,d,op2", "call(epfd=70000, f=0x11170, d=0x11170, op2=0x11170)", 70000, 70000, 70000, 70000);
}

static void test_arguments_that_differ(void **state)
{
	static const uint64_t args[6] = {1, 2, 3, 4, 5, 6};

	expect("a,b,c", "call(a=…, b=2, c=…)", args, 1 << 0 | 1 << 2);
	expect("a,b,c", "call(a=1, b=2, c=3)", args, 1 << 3); /* there is no fourth */
	expect("a,b,c,d,e,f", "call(a=…, b=…, c=…, d=…, e=…, f=…)", args, 0x3f);
}

static void expect_number(int64_t nr, const char *params, const char *want)
{
	char *text = call_text(params, nr, (const uint64_t[6]){1, 2, 3, 4, 5, 6}, 0);

	assert_string_equal(text, want);
	free(text);
}

static void test_unknown_parameters(void **state)
{
	expect_number(0, NULL, "call(1, 2, 3, 4, 5, 6)");
	expect_number(1, "a", "nothing()");
	expect_number(2, "a", "syscall 2(1, 2, 3, 4, 5, 6)");
	expect_number(-1, "a", "syscall -1(1, 2, 3, 4, 5, 6)");
	expect_number(INT64_MIN, "a", "syscall -9223372036854775808(1, 2, 3, 4, 5, 6)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_arguments_that_differ),
		cmocka_unit_test(test_unknown_parameters),
	};

	return cmocka_run_group_tests_name("text_syscall", tests, NULL, NULL);
}
