/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "offcpu/feed/remaps.h"

enum { US = 1000, MS = 1000 * US };
static const uint64_t START = 5000000000;

/* Ten libraries in a row are one reading, once there is quiet. */
static void test_gathers_a_burst(void **state)
{
	struct remaps remaps = {0};

	assert_false(remaps_pending(&remaps));
	for (int i = 0; i < 10; i++) {
		remaps_note(&remaps, 7, START + i * 100 * US);
		assert_int_equal(remaps_take(&remaps, START + i * 100 * US), 0);
	}
	assert_true(remaps_pending(&remaps));
	assert_int_equal(remaps_take(&remaps, START + 2 * MS), 7);
	assert_int_equal(remaps_take(&remaps, START + 2 * MS), 0);
	assert_false(remaps_pending(&remaps));
	remaps_deinit(&remaps);
}

static void test_each_process_by_itself(void **state)
{
	struct remaps remaps = {0};

	remaps_note(&remaps, 7, START);
	remaps_note(&remaps, 8, START + MS / 2);
	assert_int_equal(remaps_take(&remaps, START + MS), 7);
	assert_int_equal(remaps_take(&remaps, START + MS), 0);
	assert_int_equal(remaps_take(&remaps, START + 3 * MS / 2), 8);
	assert_int_equal(remaps_take(&remaps, START + 3 * MS / 2), 0);
	remaps_deinit(&remaps);
}

/* A process that is never quiet is read all the same, more and more rarely, and the last change is not forgotten. */
static void test_never_quiet(void **state)
{
	struct remaps remaps = {0};
	uint64_t now = START, last = START, gap = 0;
	int readings = 0;

	for (; now < START + 10000ull * MS; now += MS / 2) {
		remaps_note(&remaps, 7, now);
		if (remaps_take(&remaps, now) != 7)
			continue;
		assert_true(now - last >= gap);
		gap = now - last;
		last = now;
		readings++;
	}
	assert_in_range(readings, 15, 25);
	assert_true(remaps_pending(&remaps));
	assert_int_equal(remaps_take(&remaps, now + 1000ull * MS), 7);
	remaps_deinit(&remaps);
}

/* After a second without changes a process is as good as new. */
static void test_forgets(void **state)
{
	struct remaps remaps = {0};
	uint64_t now = START;

	for (int i = 0; i < 8; i++, now += 300ull * MS) {
		remaps_note(&remaps, 7, now);
		assert_int_equal(remaps_take(&remaps, now + 299ull * MS), 7);
	}
	now += 2000ull * MS;
	assert_int_equal(remaps_take(&remaps, now), 0);
	assert_int_equal(remaps.recent.len, 0);
	remaps_note(&remaps, 7, now);
	assert_int_equal(remaps_take(&remaps, now + MS), 7);
	remaps_note(&remaps, 7, now + 2 * MS);
	assert_int_equal(remaps_take(&remaps, now + 3 * MS), 7);
	remaps_deinit(&remaps);
}

static void test_is_bounded(void **state)
{
	struct remaps remaps = {0};

	for (pid_t tgid = 1; tgid < 20000; tgid++)
		remaps_note(&remaps, tgid, START);
	assert_in_range(remaps.recent.len, 1, 8192);
	assert_int_equal(remaps_take(&remaps, START + MS), 1);
	remaps_deinit(&remaps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gathers_a_burst), cmocka_unit_test(test_each_process_by_itself),
		cmocka_unit_test(test_never_quiet),     cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
