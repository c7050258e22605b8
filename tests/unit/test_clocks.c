/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <unistd.h>

#include "base/clock.h"
#include "proc/clocks.h"

static void test_text(void **state)
{
	struct clock_offsets offsets;

	assert_true(clock_offsets_parse("monotonic       86400         5\nboottime       -86400 500000000\n", &offsets));
	assert_true(offsets.monotonic_ns == INT64_C(86400) * NS_PER_S + 5);
	assert_true(offsets.boottime_ns == INT64_C(-86400) * NS_PER_S + 500000000);
}

static void test_damaged_text(void **state)
{
	static const char *const texts[] = {
		"", "monotonic", "monotonic 1", "monotonic 1 2\n", "boottime 1 2\n", "monotonic 1 2\nboottime x 2\n", "monotonic 1 -2\nboottime 1 2\n",
		"monotonic 1 1000000000\nboottime 1 2\n", "monotonic 9223372036854775807 0\nboottime 1 2\n", "monotonic -9223372036854775807 0\nboottime 1 2\n",
	};
	struct clock_offsets offsets;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(clock_offsets_parse(texts[i], &offsets));
}

static void test_ourselves(void **state)
{
	struct clock_offsets offsets = {1, 1};
	struct process self;

	assert_int_equal(process_open(getpid(), NULL, &self), 0);
	assert_true(clock_offsets_of(&self, &offsets));
	assert_true(offsets.monotonic_ns == 0 && offsets.boottime_ns == 0);
	process_close(&self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_damaged_text),
		cmocka_unit_test(test_ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
