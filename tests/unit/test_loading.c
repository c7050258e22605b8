/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#ifdef HAVE_BPF

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/loading.h"

static void hear(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	loading_quiet(LIBBPF_WARN, fmt, ap);
	va_end(ap);
}

static void refuse_saying(const char *words)
{
	char log[200];

	snprintf(log, sizeof(log), "0: R1=ctx()\n%s\nprocessed 7 insns\n", words);
	hear("prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n", "on_switch", log);
}

static void refuse(void)
{
	refuse_saying("R1 type=scalar expected=ctx");
}

static void test_refusal(void **state)
{
	struct err err = {0};

	refuse();
	assert_int_equal(loading_explain(&err, EINVAL, "loading", NULL), -EINVAL);
	assert_non_null(strstr(err.msg, "loading failed"));
	if (!strstr(err.msg, "BTF")) /* which this kernel lacks */
		assert_non_null(strstr(err.msg, "R1 type=scalar expected=ctx"));
}

/* What the verifier said of one step is not said of another, also if it was not told at once. */
static void test_refusal_is_said_once(void **state)
{
	struct err err = {0};

	refuse();
	assert_int_equal(loading_explain(&err, EPERM, "loading", NULL), -EPERM);
	assert_non_null(strstr(err.msg, "CAP_BPF"));
	assert_int_equal(loading_explain(&err, EINVAL, "attaching", NULL), -EINVAL);
	assert_non_null(strstr(err.msg, "attaching failed"));
	assert_null(strstr(err.msg, "type=scalar"));
}

static void expect_helper(const char *words, const char *sentence)
{
	struct err err = {0};

	refuse_saying(words);
	assert_int_equal(loading_explain(&err, EINVAL, "loading", "it is old"), -EINVAL);
	if (!strstr(err.msg, "BTF"))
		assert_string_equal(err.msg, sentence);
}

/* What a kernel lacks has a name, and a kernel that has it. */
static void test_missing_helper(void **state)
{
	expect_helper("invalid func unknown#175",
		      "loading failed: this kernel has no bpf_task_pt_regs for it, which Linux 5.15 has: it is old");
	expect_helper("unknown func bpf_loop#181",
		      "loading failed: this kernel has no bpf_loop for it, which Linux 5.17 has: it is old");
	expect_helper("program of this type cannot use helper bpf_task_storage_get#156",
		      "loading failed: the kernel's verifier says \"program of this type cannot use helper "
		      "bpf_task_storage_get#156\"");
	expect_helper("invalid func unknown#8388607",
		      "loading failed: the kernel's verifier says \"invalid func unknown#8388607\"");
}

static int print_own(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

/* A program that uses libbpf, too, hears of its own failures. */
static void test_print_is_put_back(void **state)
{
	libbpf_print_fn_t before = libbpf_set_print(print_own);

	loading_begin();
	{
		LOADING_QUIETLY;

		assert_ptr_equal(libbpf_set_print(loading_quiet), loading_quiet);
	}
	assert_ptr_equal(libbpf_set_print(loading_quiet), loading_quiet);
	loading_end();
	assert_ptr_equal(libbpf_set_print(before), print_own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_helper),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_print_is_put_back),
		cmocka_unit_test(test_refusal_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_none(void **state)
{
	print_message("skipped: built without BPF\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_none)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
