/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/offcpu_totals.h"

static void test_totals(void **state)
{
	struct offcpu_thread threads[] = {
		{.sleeping_ns = 1, .uninterruptible_ns = 10, .runnable_ns = 100},
		{.sleeping_ns = 2, .uninterruptible_ns = 20, .runnable_ns = 200},
	};
	struct offcpu_row rows[] = {
		{.sum = {.count = 1, .total_ns = 5, .runnable_ns = 1}, .cause = OFFCPU_CAUSE_TIMER, .idle = true},
		{.sum = {.count = 7, .total_ns = 50, .runnable_ns = 50}, .cause = OFFCPU_CAUSE_CPU},
		{.sum = {.count = 2, .total_ns = 6}, .cause = OFFCPU_CAUSE_LOCK, .idle = true},
		{.sum = {.count = 4, .total_ns = 30, .runnable_ns = 10}, .cause = OFFCPU_CAUSE_LOCK},
	};
	struct offcpu_profile profile = {.threads = {threads, 2, 2}, .rows = {rows, 4, 4}};
	const struct offcpu_totals totals = offcpu_totals(&profile);

	assert_int_equal(totals.sleeping_ns, 3);
	assert_int_equal(totals.uninterruptible_ns, 30);
	assert_int_equal(totals.runnable_ns, 300);
	assert_int_equal(totals.idle_rows, 2);
	assert_int_equal(totals.idle_count, 3);
	assert_int_equal(totals.idle_ns, 11);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_TIMER].total_ns, 4);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_TIMER].idle_ns, 4);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_LOCK].count, 6);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_LOCK].total_ns, 26);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_LOCK].idle_ns, 6);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_CPU].count, 7);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_CPU].total_ns, 61);
	assert_int_equal(totals.causes[OFFCPU_CAUSE_CPU].idle_ns, 1);
}

static void test_shares(void **state)
{
	assert_int_equal(offcpu_share(0, 0), 0);
	assert_int_equal(offcpu_share(5, 0), 0);
	assert_int_equal(offcpu_share(1, 3), 33333);
	assert_int_equal(offcpu_share(3, 3), 100000);
	assert_int_equal(offcpu_share(UINT64_MAX, UINT64_MAX), 100000);
	assert_int_equal(offcpu_share(UINT64_MAX / 2, UINT64_MAX), 49999);
}

static void test_average(void **state)
{
	assert_int_equal(offcpu_average(&(struct offcpu_sum){0}), 0);
	assert_int_equal(offcpu_average(&(struct offcpu_sum){.count = 3, .total_ns = 10}), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_average),
	};

	return cmocka_run_group_tests_name("offcpu_totals", tests, NULL, NULL);
}
