/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "model/trace.h"

static bool complete(enum thread_status status, enum stack_end end)
{
	struct snap_thread thread = {.status = status};
	struct trace_thread t = {.thread = &thread, .raw = {.end = end}};

	return trace_thread_is_complete(&t);
}

static void test_thread_is_complete(void **state)
{
	assert_true(complete(THREAD_CAPTURED, STACK_COMPLETE));
	assert_false(complete(THREAD_CAPTURED, STACK_NO_UNWIND_INFO));
	assert_false(complete(THREAD_CAPTURED, STACK_DEPTH_LIMIT));
	assert_false(complete(THREAD_RUNNING, STACK_NOT_CAPTURED));
	assert_false(complete(THREAD_STOP_TIMEOUT, STACK_NOT_CAPTURED));
	assert_false(complete(THREAD_NOT_PERMITTED, STACK_NOT_CAPTURED));
	assert_true(complete(THREAD_ZOMBIE, STACK_NOT_CAPTURED));
	assert_true(complete(THREAD_EXITED, STACK_NOT_CAPTURED));
	assert_true(complete(THREAD_KERNEL, STACK_NOT_CAPTURED));
}

static void test_trace_is_complete(void **state)
{
	struct snap_thread threads[2] = {{.tid = 1}, {.tid = 2}};
	struct trace trace = {0};

	assert_true(trace_is_complete(&trace));
	for (size_t i = 0; i < 2; i++)
		assert_true(vec_push(&trace.threads, (struct trace_thread){.thread = &threads[i]}));
	assert_true(trace_is_complete(&trace));
	trace.threads.data[1].raw.end = STACK_UNREADABLE;
	assert_false(trace_is_complete(&trace));
	assert_true(vec_push(&trace.threads.data[0].raw, (struct raw_frame){.pc = 1}));
	trace_deinit(&trace);
	assert_int_equal(trace.threads.len, 0);
}

static void test_task_states(void **state)
{
	for (int i = 0; i < TASK_STATE_COUNT; i++)
		assert_non_null(task_state_name(i));
	assert_string_equal(task_state_name(TASK_CREATED), "created");
	assert_string_equal(task_state_name(TASK_STATE_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_is_complete),
		cmocka_unit_test(test_trace_is_complete),
		cmocka_unit_test(test_task_states),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
