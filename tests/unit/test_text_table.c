/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/text_table.h"
#include "sample.h"

static const char *where(const struct stack *user, const struct stack *kernel)
{
	const struct trace_thread thread = {.user = user, .kernel = kernel};
	const struct frame *frame = text_table_frame(&thread);

	return frame ? frame->symbol : NULL;
}

static void test_outside_of_the_c_library(void **state)
{
	assert_string_equal(where(&sample_epoll, &sample_epoll_kernel), "aeMain");
	assert_string_equal(where(&sample_spin, NULL), "mix");
	assert_string_equal(where(&sample_futex, NULL), "__futex_abstimed_wait_common"); /* there is nothing else */
	assert_string_equal(where(NULL, &sample_disk_kernel), "xfs_buf_lock");
	assert_null(where(NULL, NULL));
}

static void test_names_before_places(void **state)
{
	static const struct module_info jemalloc = {.path = "/usr/lib/libjemalloc.so.2"}, musl = {.path = "/lib/ld-musl-x86_64.so.1"};
	const struct stack both = SAMPLE_STACK({.symbol = "poll", .module = &musl}, {.module = &jemalloc}, {.symbol = "run"});
	const struct stack one = SAMPLE_STACK({.symbol = "poll", .module = &musl}, {.module = &jemalloc}, {.symbol = "_start"});
	const struct trace_thread thread = {.user = &one};

	assert_string_equal(where(&both, NULL), "run");
	assert_ptr_equal(text_table_frame(&thread)->module, &jemalloc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outside_of_the_c_library),
		cmocka_unit_test(test_names_before_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
