/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/offcpu_groups.h"

static struct offcpu_row row(pid_t tid, const struct stack *user, pid_t waker, uint64_t ns)
{
	struct offcpu_row row = {
		.pid = 1, .tid = tid, .state = 'S', .user = user, .has_waker = waker != 0, .waker = {.tid = waker}};

	offcpu_sum_add(&row.sum, ns, 0);
	return row;
}

/* The stack with the longest total comes first, though another has the longest row. */
static void test_groups(void **state)
{
	struct stack a = {0}, b = {0};
	struct offcpu_row rows[] = {
		row(1, &a, 0, 50), row(1, &b, 7, 40), row(2, &b, 8, 30), row(2, &b, 7, 20), row(1, &b, 0, 10),
	};
	struct offcpu_profile profile = {.rows = {rows, 5, 5}};
	struct offcpu_groups groups = {0};
	const struct offcpu_group *group;

	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 2);
	group = &groups.data[0];
	assert_int_equal(group->sum.total_ns, 100);
	assert_int_equal(group->sum.count, 4);
	assert_int_equal(group->sum.min_ns, 10);
	assert_ptr_equal(group->row, &rows[1]);
	assert_int_equal(group->nthreads, 2);
	assert_int_equal(group->threads[0].row->tid, 1);
	assert_int_equal(group->threads[1].row->tid, 2);
	assert_ptr_equal(group->threads[1].row, &rows[2]);
	assert_int_equal(group->threads[1].sum.total_ns, 50);
	assert_int_equal(group->nwakers, 3);
	assert_ptr_equal(group->wakers[0].row, &rows[1]);
	assert_int_equal(group->wakers[0].sum.total_ns, 60);
	assert_ptr_equal(group->wakers[1].row, &rows[2]);
	assert_ptr_equal(group->wakers[2].row, &rows[4]);
	assert_int_equal(groups.data[1].nthreads, 1);
	assert_ptr_equal(groups.data[1].row, &rows[0]);
	offcpu_groups_deinit(&groups);
}

/* Both have no number: an interrupt, and a thread of another pid namespace. */
static void test_wakers_without_number(void **state)
{
	struct offcpu_row rows[] = {row(1, NULL, 0, 40), row(1, NULL, 0, 30), row(2, NULL, 0, 20), row(2, NULL, 0, 10)};
	struct offcpu_profile profile = {.rows = {rows, 4, 4}};
	struct offcpu_groups groups = {0};

	for (size_t i = 0; i < 4; i++) {
		rows[i].has_waker = true;
		rows[i].waker.interrupt = i % 2;
	}
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 1);
	assert_int_equal(groups.data[0].nwakers, 2);
	assert_ptr_equal(groups.data[0].wakers[0].row, &rows[0]);
	assert_int_equal(groups.data[0].wakers[0].sum.total_ns, 60);
	assert_ptr_equal(groups.data[0].wakers[1].row, &rows[1]);
	assert_int_equal(groups.data[0].wakers[1].sum.total_ns, 40);
	offcpu_groups_deinit(&groups);
}

/* What is idle is last, however long it is, and by itself where other threads are not idle in the same place. */
static void test_idle(void **state)
{
	struct stack a = {0};
	struct offcpu_row rows[] = {row(1, &a, 0, 90), row(2, &a, 0, 80), row(3, &a, 0, 10), row(4, NULL, 0, 5)};
	struct offcpu_profile profile = {.rows = {rows, 4, 4}};
	struct offcpu_groups groups = {0};

	rows[0].idle = rows[1].idle = true;
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 3);
	assert_ptr_equal(groups.data[0].row, &rows[2]);
	assert_ptr_equal(groups.data[1].row, &rows[3]);
	assert_ptr_equal(groups.data[2].row, &rows[0]);
	assert_int_equal(groups.data[2].nthreads, 2);
	assert_false(groups.data[0].idle);
	assert_true(groups.data[2].idle);
	offcpu_groups_deinit(&groups);
}

/* So it is with processes as a whole. */
static void test_idle_processes(void **state)
{
	struct stack a = {0};
	struct offcpu_row rows[] = {row(0, NULL, 7, 90), row(0, NULL, 8, 80), row(0, &a, 7, 70)};
	struct offcpu_profile profile = {.rows = {rows, 3, 3}};
	struct offcpu_groups groups = {0};

	rows[0].idle = rows[1].idle = true;
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 2);
	assert_false(groups.data[0].idle);
	assert_true(groups.data[1].idle);
	assert_int_equal(groups.data[1].nwakers, 2);
	offcpu_groups_deinit(&groups);
}

/* Threads are by number if that is how they differ, else by their time. */
static void test_order_of_threads(void **state)
{
	struct offcpu_row alike[] = {row(3, NULL, 0, 100), row(1, NULL, 0, 90), row(2, NULL, 0, 80)};
	struct offcpu_row other[] = {row(3, NULL, 0, 100), row(1, NULL, 0, 90), row(2, NULL, 0, 79)};
	struct offcpu_profile profile = {.rows = {alike, 3, 3}};
	struct offcpu_groups groups = {0};

	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_true(groups.data[0].alike);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(groups.data[0].threads[i].row->tid, i + 1);
	offcpu_groups_deinit(&groups);
	profile.rows.data = other;
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_false(groups.data[0].alike);
	for (size_t i = 0; i < 3; i++)
		assert_ptr_equal(groups.data[0].threads[i].row, &other[i]);
	offcpu_groups_deinit(&groups);
}

/* Only by a user stack are threads of several processes known to be at the same place. */
static void test_processes(void **state)
{
	struct stack a = {0};
	struct offcpu_row rows[] = {row(5, &a, 0, 9),   row(2, &a, 0, 9), row(3, &a, 0, 9), row(5, NULL, 0, 8),
				    row(2, NULL, 0, 8), row(0, &a, 0, 7), row(0, &a, 0, 7)};
	struct offcpu_profile profile = {.rows = {rows, 7, 7}};
	struct offcpu_groups groups = {0};

	rows[0].pid = rows[3].pid = rows[5].pid = 5;
	rows[1].pid = rows[2].pid = rows[4].pid = rows[6].pid = 2;
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 5);
	assert_int_equal(groups.data[0].nthreads, 3);
	assert_int_equal(groups.data[0].nprocesses, 2);
	assert_ptr_equal(groups.data[0].threads[0].row, &rows[1]);
	assert_ptr_equal(groups.data[0].threads[2].row, &rows[0]);
	for (size_t i = 1; i < groups.len; i++)
		assert_int_equal(groups.data[i].nprocesses, 1);
	offcpu_groups_deinit(&groups);
}

static void test_what_differs(void **state)
{
	struct offcpu_row rows[] = {row(1, NULL, 0, 9), row(1, NULL, 0, 9), row(1, NULL, 0, 9),
				    row(1, NULL, 0, 9), row(1, NULL, 0, 9), row(2, NULL, 0, 1)};
	struct offcpu_profile profile = {.rows = {rows, 6, 6}};
	struct offcpu_groups groups = {0};
	struct stack kernel = {0};

	rows[1].state = 'D';
	rows[2].user_error = "it ends at 0x10";
	rows[3].kernel = &kernel;
	rows[4].pid = 2;
	rows[5].user_error = "it ends at 0x20"; /* the same, but for the thread and its addresses */
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 5);
	assert_ptr_equal(groups.data[0].row, &rows[2]);
	assert_int_equal(groups.data[0].nthreads, 2);
	for (size_t i = 1; i < groups.len; i++)
		assert_ptr_equal(groups.data[i].row, &rows[i - (i < 3)]); /* of equals, as they were */
	offcpu_groups_deinit(&groups);
}

static void test_nothing(void **state)
{
	struct offcpu_profile profile = {0};
	struct offcpu_groups groups = {0};

	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 0);
	offcpu_groups_deinit(&groups);
}

/* A thread is preempted anywhere in a loop, and sleeps where it was written to. */
static void test_preempted(void **state)
{
	struct frame frames[][2] = {
		{{.symbol = "work", .address = 0x10}, {.symbol = "main", .address = 0x100}},
		{{.symbol = "work", .address = 0x20}, {.symbol = "main", .address = 0x100}},
		{{.symbol = "rest", .address = 0x30}, {.symbol = "main", .address = 0x100}},
	};
	struct frame timer = {.symbol = "timer", .address = 1, .kind = FRAME_KIND_KERNEL}, later = timer;
	struct stack stacks[] = {{frames[0], 2, 2}, {frames[1], 2, 2}, {frames[2], 2, 2}};
	struct stack interrupt = {&timer, 1, 1}, same_interrupt = {&later, 1, 1};
	struct offcpu_row rows[] = {row(1, &stacks[0], 0, 50), row(1, &stacks[1], 0, 40), row(2, &stacks[1], 0, 30),
				    row(1, &stacks[2], 0, 20), row(1, NULL, 0, 10)};
	struct offcpu_profile profile = {.rows = {rows, 5, 5}};
	struct offcpu_groups groups = {0};

	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 4);
	offcpu_groups_deinit(&groups);
	for (size_t i = 0; i < 5; i++)
		rows[i].state = 'R';
	assert_true(offcpu_groups_find(&groups, &profile, true));
	assert_int_equal(groups.len, 4);
	offcpu_groups_deinit(&groups);
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 3);
	assert_ptr_equal(groups.data[0].row, &rows[0]);
	assert_int_equal(groups.data[0].sum.total_ns, 120);
	assert_int_equal(groups.data[0].nplaces, 2);
	assert_int_equal(groups.data[0].nthreads, 2);
	assert_int_equal(groups.data[1].nplaces, 1);
	offcpu_groups_deinit(&groups);
	rows[1].kernel = &interrupt;
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 4);
	rows[0].kernel = rows[2].kernel = &same_interrupt;
	offcpu_groups_deinit(&groups);
	assert_true(offcpu_groups_find(&groups, &profile, false));
	assert_int_equal(groups.len, 3);
	offcpu_groups_deinit(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),         cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_processes), cmocka_unit_test(test_order_of_threads),
		cmocka_unit_test(test_processes),      cmocka_unit_test(test_what_differs),
		cmocka_unit_test(test_nothing),        cmocka_unit_test(test_wakers_without_number),
		cmocka_unit_test(test_preempted),
	};

	return cmocka_run_group_tests_name("offcpu_groups", tests, NULL, NULL);
}
