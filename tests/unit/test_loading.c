/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#ifdef HAVE_BPF

#include <errno.h>
#include <string.h>

#include "kernel/loading.h"

static void hear(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	loading_quiet(LIBBPF_WARN, fmt, ap);
	va_end(ap);
}

static void refuse(void)
{
	hear("prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n", "on_switch",
	     "0: R1=ctx()\nunknown func bpf_loop#181\nprocessed 7 insns\n");
}

static void test_refusal(void **state)
{
	struct err err = {0};

	refuse();
	assert_int_equal(loading_explain(&err, EINVAL, "loading", NULL), -EINVAL);
	assert_non_null(strstr(err.msg, "loading failed"));
	if (!strstr(err.msg, "BTF")) /* which this kernel lacks */
		assert_non_null(strstr(err.msg, "unknown func bpf_loop#181"));
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
	assert_null(strstr(err.msg, "bpf_loop"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusal),
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
