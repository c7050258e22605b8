/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/group.h"

enum { NTHREADS = 7, PID = 100 };

static const struct stack stack_a, stack_b;

static struct snap_thread threads[NTHREADS] = {
	{.tid = 105, .state = 'S', .syscall = {.state = SYSCALL_IN, .nr = 202, .args = {1}}},
	{.tid = 104, .state = 'S', .syscall = {.state = SYSCALL_IN, .nr = 202, .args = {2}}},
	{.tid = 103, .state = 'Z', .status = THREAD_ZOMBIE},
	{.tid = PID, .state = 'S', .syscall = {.state = SYSCALL_IN, .nr = 232}},
	{.tid = 102, .state = 'R', .capture = CAPTURE_HELD},
	{.tid = 101, .state = 'D'},
	{.tid = 106, .state = 'S', .syscall = {.state = SYSCALL_IN, .nr = 0}},
};

static void make(struct snapshot *snap, struct trace *trace)
{
	*snap = (struct snapshot){.pid = PID};
	*trace = (struct trace){.snap = snap};
	for (size_t i = 0; i < NTHREADS; i++)
		assert_true(vec_push(&trace->threads, (struct trace_thread){.snap = snap, .thread = &threads[i], .user = &stack_a}));
}

static pid_t tid_at(const struct groups *g, size_t group, size_t member)
{
	return g->members[g->data[group].first + member]->thread->tid;
}

static void test_order_and_merge(void **state)
{
	static const pid_t want[] = {102, 101, PID, 106, 104, 103};
	struct snapshot snap;
	struct trace trace;
	struct groups g;

	make(&snap, &trace);
	assert_int_equal(groups_init(&g, &(const struct trace *){&trace}, 1, true), 0);
	assert_int_equal(g.len, 6);
	for (size_t i = 0; i < g.len; i++)
		assert_int_equal(tid_at(&g, i, 0), want[i]);
	assert_int_equal(g.data[4].count, 2);
	assert_int_equal(tid_at(&g, 4, 1), 105);
	groups_deinit(&g);
	trace_deinit(&trace);
}

static void test_no_merge(void **state)
{
	struct snapshot snap;
	struct trace trace;
	struct groups g;

	make(&snap, &trace);
	assert_int_equal(groups_init(&g, &(const struct trace *){&trace}, 1, false), 0);
	assert_int_equal(g.len, NTHREADS);
	assert_int_equal(tid_at(&g, 0, 0), 102);
	assert_int_equal(tid_at(&g, NTHREADS - 1, 0), 103);
	groups_deinit(&g);
	trace_deinit(&trace);
}

static void test_what_keeps_threads_apart(void **state)
{
	struct snapshot snap;
	struct trace trace;
	struct groups g;

	make(&snap, &trace);
	trace.threads.len = 2;
	trace.threads.data[1].user = &stack_b;
	assert_int_equal(groups_init(&g, &(const struct trace *){&trace}, 1, true), 0);
	assert_int_equal(g.len, 2);
	groups_deinit(&g);
	trace.threads.data[1].user = &stack_a;
	trace.threads.data[1].raw.end = STACK_NO_UNWIND_INFO;
	assert_int_equal(groups_init(&g, &(const struct trace *){&trace}, 1, true), 0);
	assert_int_equal(g.len, 2);
	groups_deinit(&g);
	trace_deinit(&trace);
}

static void test_nothing(void **state)
{
	struct snapshot snap = {.pid = PID};
	struct trace trace = {.snap = &snap};
	struct groups g;

	assert_int_equal(groups_init(&g, &(const struct trace *){&trace}, 1, true), 0);
	assert_int_equal(g.len, 0);
	groups_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_merge),
		cmocka_unit_test(test_no_merge),
		cmocka_unit_test(test_what_keeps_threads_apart),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
