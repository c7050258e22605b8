/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "symbol/ranges.h"

enum { NOTHING = -1 };

static struct ranges make(const uint64_t (*pairs)[2], size_t n)
{
	struct ranges ranges = {0};

	for (size_t i = 0; i < n; i++)
		assert_true(ranges_add(&ranges, pairs[i][0], pairs[i][1], (uint32_t)i));
	assert_true(ranges_sort(&ranges));
	return ranges;
}

static void expect(const struct ranges *ranges, uint64_t address, int id)
{
	const struct range *found = ranges_find(ranges, address);

	assert_int_equal(found ? (int)found->id : NOTHING, id);
}

static void test_apart(void **state)
{
	struct ranges r = make((const uint64_t[][2]){{30, 40}, {10, 20}, {20, 25}}, 3);

	expect(&r, 9, NOTHING);
	expect(&r, 10, 1);
	expect(&r, 19, 1);
	expect(&r, 20, 2);
	expect(&r, 25, NOTHING);
	expect(&r, 29, NOTHING);
	expect(&r, 39, 0);
	expect(&r, 40, NOTHING);
	expect(&r, UINT64_MAX, NOTHING);
	ranges_deinit(&r);
	assert_null(r.data);
	assert_null(r.reach);
}

/* The one that starts last, and of those that start together the shortest. */
static void test_nested(void **state)
{
	struct ranges r = make((const uint64_t[][2]){{0, 100}, {10, 15}, {20, 30}, {10, 50}}, 4);

	expect(&r, 0, 0);
	expect(&r, 12, 1);
	expect(&r, 15, 3);
	expect(&r, 25, 2);
	expect(&r, 30, 3); /* behind the inner one, which starts before it all the same */
	expect(&r, 50, 0);
	expect(&r, 99, 0);
	expect(&r, 100, NOTHING);
	ranges_deinit(&r);
}

static void test_overlapping(void **state)
{
	struct ranges r = make((const uint64_t[][2]){{0, 20}, {10, 30}, {40, 41}}, 3);

	expect(&r, 9, 0);
	expect(&r, 15, 1);
	expect(&r, 25, 1);
	expect(&r, 30, NOTHING);
	expect(&r, 40, 2);
	ranges_deinit(&r);
}

static void test_empty(void **state)
{
	struct ranges none = make(NULL, 0);
	struct ranges r = make((const uint64_t[][2]){{10, 10}, {20, 10}, {UINT64_MAX, 0}, {5, 6}}, 4);

	expect(&none, 0, NOTHING);
	assert_int_equal(r.len, 1);
	expect(&r, 10, NOTHING);
	expect(&r, 15, NOTHING);
	expect(&r, 5, 3);
	ranges_deinit(&r);
	ranges_deinit(&none);
}

static void test_whole_address_space(void **state)
{
	struct ranges r = make((const uint64_t[][2]){{0, UINT64_MAX}, {UINT64_MAX - 1, UINT64_MAX}}, 2);

	expect(&r, 0, 0);
	expect(&r, UINT64_MAX - 2, 0);
	expect(&r, UINT64_MAX - 1, 1);
	expect(&r, UINT64_MAX, NOTHING);
	ranges_deinit(&r);
}

/* Against a search of all. */
static void test_random_ranges(void **state)
{
	uint64_t seed = 1, pairs[60][2];

	for (int round = 0; round < 50; round++) {
		struct ranges r;

		for (int i = 0; i < 60; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			pairs[i][0] = seed >> 33 & 0xff;
			pairs[i][1] = pairs[i][0] + (seed >> 50 & 0x1f);
		}
		r = make(pairs, 60);
		for (uint64_t at = 0; at < 300; at++) {
			const struct range *found = ranges_find(&r, at);
			uint64_t best = 0;
			bool any = false;

			for (int i = 0; i < 60; i++) {
				if (at < pairs[i][0] || at >= pairs[i][1])
					continue;
				any = true;
				if (pairs[i][0] > best)
					best = pairs[i][0];
			}
			assert_int_equal(found != NULL, any);
			if (found) {
				assert_int_equal(found->start, best);
				assert_true(found->end > at);
			}
		}
		ranges_deinit(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_overlapping),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_whole_address_space),
		cmocka_unit_test(test_random_ranges),
	};

	return cmocka_run_group_tests_name("ranges", tests, NULL, NULL);
}
