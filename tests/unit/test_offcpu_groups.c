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
		row(1, &a, 0, 50), row(1, &b, 7, 40), row(1, &b, 8, 30), row(2, &b, 7, 20), row(1, &b, 0, 10),
	};
	struct offcpu_profile profile = {.rows = {rows, 5, 5}};
	struct offcpu_groups groups = {0};

	rows[0].idle = rows[1].idle = true;
	assert_true(offcpu_groups_find(&groups, &profile));
	assert_int_equal(groups.len, 3);
	assert_int_equal(groups.data[0].nrows, 3);
	assert_int_equal(groups.data[0].sum.total_ns, 80);
	assert_int_equal(groups.data[0].sum.count, 3);
	assert_int_equal(groups.data[0].sum.min_ns, 10);
	assert_false(groups.data[0].idle);
	assert_ptr_equal(groups.data[0].rows[0], &rows[1]);
	assert_ptr_equal(groups.data[0].rows[1], &rows[2]);
	assert_ptr_equal(groups.data[0].rows[2], &rows[4]);
	assert_int_equal(groups.data[1].nrows, 1);
	assert_ptr_equal(groups.data[1].rows[0], &rows[0]);
	assert_true(groups.data[1].idle);
	assert_ptr_equal(groups.data[2].rows[0], &rows[3]);
	offcpu_groups_deinit(&groups);
}

static void test_what_differs(void **state)
{
	struct offcpu_row rows[] = {row(1, NULL, 0, 9), row(1, NULL, 0, 9), row(1, NULL, 0, 9), row(1, NULL, 0, 9),
				    row(1, NULL, 0, 9)};
	struct offcpu_profile profile = {.rows = {rows, 5, 5}};
	struct offcpu_groups groups = {0};
	struct stack kernel = {0};

	rows[1].state = 'D';
	rows[2].user_error = "it ends";
	rows[3].kernel = &kernel;
	rows[4].pid = 2;
	assert_true(offcpu_groups_find(&groups, &profile));
	assert_int_equal(groups.len, 5);
	for (size_t i = 0; i < groups.len; i++)
		assert_ptr_equal(groups.data[i].rows[0], &rows[i]); /* of equals, as they were */
	offcpu_groups_deinit(&groups);
}

static void test_nothing(void **state)
{
	struct offcpu_profile profile = {0};
	struct offcpu_groups groups = {0};

	assert_true(offcpu_groups_find(&groups, &profile));
	assert_int_equal(groups.len, 0);
	offcpu_groups_deinit(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_what_differs),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests_name("offcpu_groups", tests, NULL, NULL);
}
