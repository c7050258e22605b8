/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "offcpu/feed/slots.h"

static void test_taken_and_given(void **state)
{
	struct slots slots;
	uint32_t a, b, c;

	assert_true(slots_init(&slots, 10));
	assert_true(slots_take(&slots, 4, &a));
	assert_true(slots_take(&slots, 4, &b));
	assert_int_equal(a, 0);
	assert_int_equal(b, 4);
	assert_false(slots_take(&slots, 3, &c));
	assert_true(slots_take(&slots, 2, &c));
	assert_int_equal(c, 8);
	assert_int_equal(slots.free.len, 0);
	assert_true(slots_give(&slots, a, 4));
	assert_true(slots_give(&slots, c, 2));
	assert_false(slots_take(&slots, 5, &a)); /* six are free, but not in a row */
	assert_true(slots_give(&slots, b, 4));
	assert_int_equal(slots.free.len, 1);
	assert_true(slots_take(&slots, 10, &a));
	assert_int_equal(a, 0);
	slots_deinit(&slots);
}

/* Beside an array that says for each slot whose it is. */
static void test_by_chance(void **state)
{
	enum { ALL = 200, OWNERS = 30 };
	struct {
		uint32_t first, count;
	} owners[OWNERS] = {0};
	uint8_t taken[ALL] = {0};
	struct slots slots;
	unsigned refused = 0;

	srand(1);
	assert_true(slots_init(&slots, ALL));
	for (int i = 0; i < 20000; i++) {
		unsigned who = (unsigned)rand() % OWNERS, runs = 0;

		if (owners[who].count) {
			assert_true(slots_give(&slots, owners[who].first, owners[who].count));
			memset(taken + owners[who].first, 0, owners[who].count);
			owners[who].count = 0;
		} else {
			uint32_t count = 1 + (uint32_t)rand() % 20, first;

			if (!slots_take(&slots, count, &first)) {
				refused++;
				continue;
			}
			assert_true(first + count <= ALL);
			for (uint32_t j = first; j < first + count; j++)
				assert_int_equal(taken[j]++, 0);
			owners[who].first = first;
			owners[who].count = count;
		}
		for (unsigned j = 0; j < ALL; j++)
			runs += !taken[j] && (j == 0 || taken[j - 1]);
		assert_int_equal(slots.free.len, runs);
	}
	assert_in_range(refused, 1, 10000);
	slots_deinit(&slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_and_given),
		cmocka_unit_test(test_by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
