/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "model/stack.h"

static void test_end_names(void **state)
{
	assert_string_equal(stack_end_name(STACK_COMPLETE), "complete");
	assert_string_equal(stack_end_name(STACK_NO_UNWIND_INFO), "no_unwind_info");
	assert_string_equal(stack_end_name(STACK_COPY_LIMIT), "stack_copy_limit");
	assert_string_equal(stack_end_name(STACK_UNREADABLE), "unreadable_memory");
	assert_string_equal(stack_end_name(STACK_NO_PROGRESS), "no_progress");
	assert_string_equal(stack_end_name(STACK_DEPTH_LIMIT), "depth_limit");
	for (int i = 0; i < STACK_END_COUNT; i++)
		assert_non_null(stack_end_name(i));
}

static void test_kind_names(void **state)
{
	assert_string_equal(frame_kind_name(FRAME_KIND_NATIVE), "native");
	assert_string_equal(frame_kind_name(FRAME_KIND_KERNEL), "kernel");
	assert_string_equal(frame_kind_name(FRAME_KIND_SIGNAL), "signal");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_end_names), cmocka_unit_test(test_kind_names)};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
