/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/task_groups.h"
#include "sample.h"

static const struct trace_task *first_of(const struct task_groups *groups, size_t i)
{
	return groups->members[groups->data[i].first];
}

/* What runs comes first, what has not begun last, and pools after what is unusual; names are in the order of their numbers. */
static void test_groups(void **state)
{
	struct snapshot *snap = sample_snapshot();
	const struct trace *traces[1];
	struct task_groups groups;
	struct trace trace;

	sample_trace(&trace, snap);
	sample_tasks(&trace);
	traces[0] = &trace;
	assert_int_equal(task_groups_init(&groups, traces, 1, true), 0);
	assert_int_equal(groups.len, 6);
	assert_string_equal(first_of(&groups, 0)->name, "busy");
	assert_string_equal(first_of(&groups, 1)->name, "Task-1");
	assert_string_equal(first_of(&groups, 2)->name, "ready");
	assert_string_equal(first_of(&groups, 3)->name, "through");
	assert_int_equal(groups.data[4].count, 11);
	assert_string_equal(first_of(&groups, 4)->name, "Task-2");
	assert_string_equal(groups.members[groups.data[4].first + 8]->name, "Task-10");
	assert_int_equal(first_of(&groups, 5)->state, TASK_CREATED);
	task_groups_deinit(&groups);
	assert_int_equal(task_groups_init(&groups, traces, 1, false), 0);
	assert_int_equal(groups.len, trace.tasks.len);
	task_groups_deinit(&groups);
	trace_deinit(&trace);
	snapshot_destroy(snap);
}

static void test_processes(void **state)
{
	struct snapshot *snaps[2] = {sample_snapshot(), sample_snapshot()};
	struct trace traces[2] = {0};
	const struct trace *both[] = {&traces[0], &traces[1]};
	struct task_groups groups;

	snaps[0]->pid = 4712;
	for (int i = 0; i < 2; i++) {
		const struct trace_task task = {.snap = snaps[i], .library = "asyncio", .stack = i ? &sample_sleep : &sample_join};

		traces[i].snap = snaps[i];
		assert_true(vec_push(&traces[i].tasks, task));
	}
	assert_int_equal(task_groups_init(&groups, both, 2, true), 0);
	assert_int_equal(groups.len, 2);
	assert_ptr_equal(first_of(&groups, 0)->snap, snaps[1]);
	task_groups_deinit(&groups);
	for (int i = 0; i < 2; i++) {
		trace_deinit(&traces[i]);
		snapshot_destroy(snaps[i]);
	}
}

static void test_none(void **state)
{
	struct task_groups groups;

	assert_int_equal(task_groups_init(&groups, NULL, 0, true), 0);
	assert_int_equal(groups.len, 0);
	task_groups_deinit(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
