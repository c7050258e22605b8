/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "bpf/switch_clock.h"

enum { MS = 1000000, NEVER_WAITS = 3000 };

/* The other clock starts later, and is slower by one part in two thousand. */
static __u64 true_ns(__u64 now)
{
	return 777 * (__u64)MS + now + now / 2000;
}

static __u64 off(const struct switch_clock *c, __u64 now)
{
	__s64 off = (__s64)(switch_clock_at(c, now) - true_ns(now));

	return off < 0 ? -off : off;
}

static void test_follows(void **state)
{
	struct switch_clock c = {0};

	for (__u64 now = 5 * (__u64)MS; now < 2000 * (__u64)MS; now += OFFCPU_COMPARED_FOR_NS) {
		assert_true(switch_clock_is_due(&c, now + 1));
		switch_clock_compare(&c, now, true_ns(now));
		assert_int_equal(off(&c, now), 0);
		assert_in_range(off(&c, now + OFFCPU_COMPARED_FOR_NS), 0, OFFCPU_COMPARED_FOR_NS / 2000);
	}
}

/* The CPU is taken away between the two looks: once, and once the first time. */
static void test_delay(void **state)
{
	struct switch_clock c = {0};
	__u64 now = 5 * (__u64)MS;

	switch_clock_compare(&c, now, true_ns(now) + 40 * MS);
	assert_true(switch_clock_is_due(&c, now)); /* one alone does not count */
	now += MS;
	switch_clock_compare(&c, now, true_ns(now));
	assert_int_equal(off(&c, now), 0);
	assert_false(switch_clock_is_due(&c, now));
	now += MS;
	switch_clock_compare(&c, now, true_ns(now) + 40 * MS);
	assert_in_range(off(&c, now), 0, MS / OFFCPU_DRIFT);
	assert_false(switch_clock_is_due(&c, now));
}

/* The CPU had nothing to do for a while: what may have become of the clocks since is not to be told from a delay. */
static void test_pause(void **state)
{
	struct switch_clock c = {0};
	__u64 now = 5 * (__u64)MS;

	for (int i = 0; i < 3; i++, now += MS)
		switch_clock_compare(&c, now, true_ns(now));
	now += 4 * MS;
	switch_clock_compare(&c, now, true_ns(now) + NEVER_WAITS);
	assert_true(switch_clock_is_due(&c, now));
	switch_clock_compare(&c, now + 1000, true_ns(now + 1000));
	assert_false(switch_clock_is_due(&c, now + 1000));
	assert_int_equal(off(&c, now + 1000), 0);
}

/* All looks are late by chance, but none by less than it is at times. */
static void test_never_ahead_of_what_was_seen(void **state)
{
	struct switch_clock c = {0};
	__u64 now = 5 * (__u64)MS;

	for (unsigned i = 0; i < 10000; i++, now += MS) {
		switch_clock_compare(&c, now, true_ns(now) + i % 8 * NEVER_WAITS);
		if (i > 8)
			assert_in_range(off(&c, now), 0, 8 * MS / OFFCPU_DRIFT);
	}
}

/* The other clock stood still while a virtual machine was halted, or was set back. */
static void test_jumps(void **state)
{
	struct switch_clock c = {0};
	__u64 now = 5 * (__u64)MS;

	switch_clock_compare(&c, now, true_ns(now));
	switch_clock_compare(&c, now + MS, true_ns(now) + 10000 * (__u64)MS);
	assert_int_equal(switch_clock_at(&c, now + MS), true_ns(now) + 10000 * (__u64)MS);
	switch_clock_compare(&c, now, true_ns(now) + 10001 * (__u64)MS);
	assert_int_equal(switch_clock_at(&c, now), true_ns(now) + 10001 * (__u64)MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_never_ahead_of_what_was_seen),
		cmocka_unit_test(test_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
