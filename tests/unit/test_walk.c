/* SPDX-License-Identifier: MIT */
#include "tinyworld.h"

enum { RBP = 6 };

static void test_end(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	char longer[400];

	tiny_stand(t, TINY_CODE + 7, 0, true);
	assert_false(walk_end(&t->walk, STACK_NO_PROGRESS, "no %s at %d", "way", 7));
	assert_int_equal(t->out.end, STACK_NO_PROGRESS);
	assert_int_equal(t->out.end_pc, TINY_CODE + 7);
	assert_string_equal(t->out.error, "no way at 7");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	walk_end(&t->walk, STACK_UNREADABLE, "%s", longer);
	assert_int_equal(strlen(t->out.error), sizeof(t->out.error) - 1);
	tiny_destroy(t);
}

static void test_beyond_the_copy(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);

	t->copy.len = 64;
	assert_false(walk_is_beyond_copy(&t->walk, TINY_STACK - 1));
	assert_false(walk_is_beyond_copy(&t->walk, TINY_STACK));
	assert_false(walk_is_beyond_copy(&t->walk, TINY_STACK + 63));
	assert_true(walk_is_beyond_copy(&t->walk, TINY_STACK + 64));
	assert_true(walk_is_beyond_copy(&t->walk, t->copy.region_end - 1));
	assert_false(walk_is_beyond_copy(&t->walk, t->copy.region_end));
	assert_false(walk_is_beyond_copy(&t->walk, UINT64_MAX));

	assert_false(walk_end_unreadable(&t->walk, TINY_STACK + 64));
	assert_int_equal(t->out.end, STACK_COPY_LIMIT);
	assert_non_null(strstr(t->out.error, "64 bytes"));
	assert_false(walk_end_unreadable(&t->walk, 0xabc0));
	assert_int_equal(t->out.end, STACK_UNREADABLE);
	assert_non_null(strstr(t->out.error, "0xabc0"));
	t->walk.stack = NULL; /* nothing was copied: --ptrace */
	assert_false(walk_is_beyond_copy(&t->walk, TINY_STACK + 64));
	tiny_destroy(t);
}

static void test_missing_registers_are_named(void **state)
{
	struct tiny *x86 = tiny_create(&arch_x86_64), *arm = tiny_create(&arch_aarch64);

	assert_false(walk_end_missing(&x86->walk, RBP));
	assert_int_equal(x86->out.end, STACK_MISSING_REGISTER);
	assert_non_null(strstr(x86->out.error, "register rbp,"));
	walk_end_missing(&arm->walk, arch_aarch64.dwarf_fp);
	assert_non_null(strstr(arm->out.error, arch_aarch64.dwarf_reg_names[arch_aarch64.dwarf_fp]));
	walk_end_missing(&x86->walk, ARCH_MAX_DWARF_REGS);
	assert_non_null(strstr(x86->out.error, "DWARF register 40,"));
	walk_end_missing(&x86->walk, UINT64_MAX);
	assert_non_null(strstr(x86->out.error, "18446744073709551615"));
	tiny_destroy(x86);
	tiny_destroy(arm);
}

static void test_words(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	uint64_t word = 0;

	t->stack[1] = UINT64_C(0x1122334455667788);
	assert_true(walk_read_word(&t->walk, TINY_STACK + 8, &word));
	assert_int_equal(word, UINT64_C(0x1122334455667788));
	assert_true(walk_read_word(&t->walk, TINY_STACK + 4, &word));
	assert_int_equal(word, UINT64_C(0x5566778800000000));
	assert_false(walk_read_word(&t->walk, TINY_STACK + sizeof(t->stack) - 7, &word));
	assert_false(walk_read_word(&t->walk, 0, &word));
	tiny_destroy(t);
}

/* A file's code is read from the file, though memory would have it; other code from memory. */
static void test_code(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	uint8_t code[4];

	tiny_code(t, TINY_CODE, "\x01\x02\x03\x04", 4);
	tiny_code(t, TINY_JIT, "\x05\x06\x07\x08", 4);
	tiny_load(t);
	assert_true(walk_read_code(&t->walk, TINY_CODE, code, 4));
	assert_memory_equal(code, "\x01\x02\x03\x04", 4);
	assert_true(walk_read_code(&t->walk, TINY_JIT, code, 4));
	assert_memory_equal(code, "\x05\x06\x07\x08", 4);
	assert_false(walk_read_code(&t->walk, TINY_BASE + TINY_IMAGE_LEN - 3, code, 4));
	assert_false(walk_read_code(&t->walk, 0, code, 4));

	assert_true(walk_is_code(&t->walk, TINY_CODE));
	assert_true(walk_is_code(&t->walk, TINY_JIT));
	assert_false(walk_is_code(&t->walk, TINY_JIT + TINY_JIT_LEN));
	assert_false(walk_is_code(&t->walk, TINY_STACK));
	assert_false(walk_is_code(&t->walk, 0));
	tiny_destroy(t);
}

static void check_return_addresses(const struct arch *arch)
{
	struct tiny *t = tiny_create(arch);
	uint64_t shortest = arch->id == ARCH_X86_64 ? 5 : 4, target;

	tiny_return(t, TINY_CODE + 0x40);
	tiny_return(t, TINY_JIT + shortest);     /* the first instruction of its mapping */
	tiny_return(t, TINY_JIT + TINY_JIT_LEN); /* the last of it */
	tiny_load(t);
	assert_true(walk_is_return_address(&t->walk, TINY_CODE + 0x40, &target));
	assert_int_equal(target, arch->id == ARCH_X86_64 ? TINY_CODE + 0x40 : TINY_CODE + 0x40 - 4);
	assert_false(walk_is_return_address(&t->walk, TINY_CODE + 0x44, &target));
	assert_false(walk_is_return_address(&t->walk, TINY_CODE + 0x3c, &target));
	assert_true(walk_is_return_address(&t->walk, TINY_JIT + shortest, &target));
	assert_false(walk_is_return_address(&t->walk, TINY_JIT, &target));
	assert_true(walk_is_return_address(&t->walk, TINY_JIT + TINY_JIT_LEN, &target));
	for (uint64_t at = 0; at < 16; at++)
		assert_false(walk_is_return_address(&t->walk, at, &target));
	assert_false(walk_is_return_address(&t->walk, TINY_STACK + 8, &target));
	assert_false(walk_is_return_address(&t->walk, UINT64_MAX, &target));
	tiny_destroy(t);
}

static void test_return_addresses(void **state)
{
	check_return_addresses(&arch_x86_64);
	check_return_addresses(&arch_aarch64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_beyond_the_copy),
		cmocka_unit_test(test_missing_registers_are_named),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_return_addresses),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
