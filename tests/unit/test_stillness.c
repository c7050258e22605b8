/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "wait/stillness.h"

/* Read in pass 2, and seen to be where it was in pass 4. */
static const struct snap_thread asleep = {.still = STILL_THROUGHOUT, .read_in = 2, .still_in = 4};

static struct snap_thread but(enum thread_stillness still, uint32_t read_in, uint32_t still_in)
{
	return (struct snap_thread){.still = still, .read_in = read_in, .still_in = still_in};
}

static void test_capture(void **state)
{
	struct snap_thread other = asleep, woken = asleep;

	assert_true(stillness_of_capture(&asleep, &other));
	woken.woken = true;
	assert_false(stillness_of_capture(&woken, &other));
	other = but(STILL_NEVER, 2, 4);
	assert_false(stillness_of_capture(&asleep, &other) || stillness_of_capture(&other, &asleep));
	other = but(STILL_THROUGHOUT, 3, 4); /* it may have run until it was read, when the other one had been */
	assert_false(stillness_of_capture(&asleep, &other));
	assert_true(stillness_of_capture(&other, &asleep));
	other = but(STILL_THROUGHOUT, 1, 1); /* it was not looked at again */
	assert_false(stillness_of_capture(&asleep, &other));
	other = but(STILL_THROUGHOUT, 1, 2);
	assert_true(stillness_of_capture(&asleep, &other));
}

/* One that was read in a window may have let go of it before. */
static void test_window(void **state)
{
	const struct snap_thread in_window = but(STILL_IN_WINDOW, 2, 4);

	assert_false(stillness_of_capture(&asleep, &in_window));
	assert_true(stillness_of_capture(&in_window, &in_window));
	assert_true(stillness_of_capture(&in_window, &asleep));
}

static void test_last_look(void **state)
{
	struct wait_threads threads = {.last_look = 4};
	struct snap_thread t = asleep;

	assert_true(stillness_lasts(&threads, &t) && stillness_of_last_look(&threads, &t, &asleep));
	t.still_in = 3;
	assert_false(stillness_lasts(&threads, &t));
	assert_false(stillness_of_last_look(&threads, &t, &asleep) || stillness_of_last_look(&threads, &asleep, &t));
	t = asleep;
	t.still = STILL_NEVER;
	assert_false(stillness_lasts(&threads, &t));
	t = asleep;
	t.woken = true; /* it waits no more, though others may wait for it */
	assert_false(stillness_of_last_look(&threads, &t, &asleep));
	assert_true(stillness_of_last_look(&threads, &asleep, &t));
	threads.last_look = 5; /* there was another look, at which nobody was */
	assert_false(stillness_of_last_look(&threads, &asleep, &asleep));
}

/* Also of a snapshot that tells of a pass in which no thread was still. */
static void test_last_look_of_a_snapshot(void **state)
{
	struct snapshot *snap = snapshot_create(100, arch_host());
	struct snap_thread t = asleep;
	struct wait_threads threads;

	t.tid = 100;
	assert_true(vec_push(&snap->threads, t));
	assert_true(wait_threads_init(&threads, snap));
	assert_true(stillness_lasts(&threads, &snap->threads.data[0]));
	wait_threads_deinit(&threads);
	snap->capture.last_look = 5;
	assert_true(wait_threads_init(&threads, snap));
	assert_false(stillness_lasts(&threads, &snap->threads.data[0]));
	wait_threads_deinit(&threads);
	snapshot_destroy(snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_last_look),
		cmocka_unit_test(test_last_look_of_a_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
