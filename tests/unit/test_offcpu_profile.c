/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "model/trace.h"
#include "offcpu/profile.h"

static void test_sums(void **state)
{
	struct offcpu_sum sum = {0}, other = {0};

	offcpu_sum_add(&sum, 30, 1);
	offcpu_sum_add(&other, 10, 0);
	offcpu_sum_add(&other, 50, 5);
	other.unfinished = 1;
	offcpu_sum_merge(&sum, &other);
	assert_int_equal(sum.count, 3);
	assert_int_equal(sum.total_ns, 90);
	assert_int_equal(sum.min_ns, 10);
	assert_int_equal(sum.max_ns, 50);
	assert_int_equal(sum.runnable_ns, 6);
	assert_int_equal(sum.unfinished, 1);
	offcpu_sum_merge(&sum, &(struct offcpu_sum){0}); /* whose shortest wait is none */
	assert_int_equal(sum.min_ns, 10);
	other = (struct offcpu_sum){0};
	offcpu_sum_merge(&other, &sum);
	assert_int_equal(other.min_ns, 10);
}

static void add_thread(struct offcpu_profile *profile, pid_t tid, uint64_t ns)
{
	struct offcpu_thread thread = {.pid = 1, .tid = tid};

	offcpu_sum_add(&thread.sum, ns, 0);
	assert_true(offcpu_profile_add_thread(profile, &thread));
}

static void add_row(struct offcpu_profile *profile, pid_t tid, char wait, uint64_t ns)
{
	struct offcpu_row row = {.pid = 1, .tid = tid, .state = wait};

	offcpu_sum_add(&row.sum, ns, 0);
	assert_true(offcpu_profile_add_row(profile, row));
}

/* Threads that had the same numbers are counted as they were started, and their rows stay apart. */
static void check_reused_numbers(bool by_process)
{
	struct offcpu_profile profile = {.duration_ns = 1000, .by_process = by_process};

	for (uint64_t start = 30; start >= 10; start -= 10) {
		add_thread(&profile, 1, start);
		add_row(&profile, 1, 'S', start);
		profile.threads.data[profile.threads.len - 1].process_start_ns = start;
		profile.threads.data[profile.threads.len - 1].start_ns = start;
		profile.rows.data[profile.rows.len - 1].process_start_ns = start;
		profile.rows.data[profile.rows.len - 1].thread_start_ns = start;
	}
	add_thread(&profile, 2, 5);
	assert_true(offcpu_profile_finish(&profile));
	assert_int_equal(profile.threads.len, 4);
	assert_int_equal(profile.rows.len, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(profile.threads.data[i].nth, 3 - i);
		assert_int_equal(profile.rows.data[i].nth, 3 - i);
		assert_int_equal(profile.rows.data[i].sum.total_ns, 10 * (3 - i));
	}
	assert_int_equal(profile.threads.data[3].nth, 1);
	offcpu_profile_deinit(&profile);
}

static void test_reused_numbers(void **state)
{
	check_reused_numbers(false);
	check_reused_numbers(true);
}

/* The heaviest first; of equals, the lower number. */
static void test_order(void **state)
{
	struct offcpu_profile profile = {.duration_ns = 1000};

	assert_true(offcpu_profile_finish(&profile));
	for (pid_t tid = 5; tid > 0; tid--)
		add_thread(&profile, tid, tid == 4 ? 200 : 100);
	add_row(&profile, 5, 'S', 40);
	add_row(&profile, 4, 'S', 200);
	add_row(&profile, 5, 'D', 60);
	add_row(&profile, 3, 'S', 60);
	assert_int_equal(profile.total.count, 5);
	assert_int_equal(profile.total.total_ns, 600);
	assert_true(offcpu_profile_finish(&profile));
	assert_int_equal(profile.threads.data[0].tid, 4);
	assert_int_equal(profile.threads.data[1].tid, 1);
	assert_int_equal(profile.threads.data[4].tid, 5);
	assert_int_equal(profile.rows.data[0].tid, 4);
	assert_int_equal(profile.rows.data[1].tid, 3);
	assert_int_equal(profile.rows.data[2].state, 'D');
	assert_int_equal(profile.rows.data[3].sum.total_ns, 40);
	offcpu_profile_deinit(&profile);
	assert_null(profile.rows.data);
}

/* Two threads that are idle for nearly all of the time, but not for twice that: who is idle is found by thread. */
static void test_processes(void **state)
{
	struct frame frame = {.symbol = "ep_poll", .kind = FRAME_KIND_KERNEL};
	struct stack kernel = {.data = &frame, .len = 1};
	struct offcpu_profile profile = {.duration_ns = 1000, .by_process = true};

	for (pid_t tid = 1; tid <= 3; tid++) {
		add_thread(&profile, tid, tid == 3 ? 100 : 900);
		add_row(&profile, tid, 'S', tid == 3 ? 100 : 900);
		profile.rows.data[tid - 1].kernel = &kernel;
	}
	assert_true(offcpu_profile_finish(&profile));
	assert_int_equal(profile.rows.len, 1);
	assert_int_equal(profile.rows.data[0].tid, 0);
	assert_int_equal(profile.rows.data[0].sum.total_ns, 1900);
	assert_true(profile.rows.data[0].idle);
	assert_int_equal(profile.threads.len, 3);
	assert_int_equal(profile.threads.data[0].idle_ns, 900);
	assert_int_equal(profile.threads.data[2].idle_ns, 0);
	offcpu_profile_deinit(&profile);
}

/* Where stacks do not tell the cause of a wait that is not over, the look at its thread does. */
static void test_looks(void **state)
{
	struct offcpu_profile profile = {.duration_ns = 1000, .stopped_ns = 2000};
	const struct snapshot snap = {.pid = 1, .taken_at_monotonic_ns = 3000};
	const struct snap_thread sleeps = {.tid = 5, .state = 'S', .off_cpu_ns = 1500}, came = {.tid = 6, .state = 'S', .off_cpu_ns = 500};
	struct trace_thread threads[] = {{.snap = &snap, .thread = &sleeps, .wait = {.kind = WAIT_MUTEX}},
					 {.snap = &snap, .thread = &came, .wait = {.kind = WAIT_MUTEX}}};
	struct trace trace = {.snap = &snap, .threads = {.data = threads, .len = 2}};

	for (pid_t tid = 5; tid <= 7; tid++) {
		add_thread(&profile, tid, 900);
		add_row(&profile, tid, 'S', 900);
		profile.rows.data[profile.rows.len - 1].sum.unfinished = 1;
	}
	assert_true(offcpu_profile_finish(&profile));
	assert_true(vec_push(&profile.looks, &trace));
	offcpu_profile_use_looks(&profile);
	for (size_t i = 0; i < profile.rows.len; i++) /* the second was in another wait by then, and nobody looked at the third */
		assert_int_equal(profile.rows.data[i].cause, profile.rows.data[i].tid == 5 ? OFFCPU_CAUSE_LOCK : OFFCPU_CAUSE_OTHER);
	offcpu_profile_deinit(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_reused_numbers),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_looks),
	};

	return cmocka_run_group_tests_name("offcpu", tests, NULL, NULL);
}
