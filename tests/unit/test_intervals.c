/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "base/intervals.h"

static void add(struct intervals *intervals, uint64_t start, uint64_t end, uint32_t id, uint32_t rank)
{
	assert_true(intervals_add(intervals, start, end, id, rank));
}

static void finish(struct intervals *intervals, struct pieces *pieces)
{
	vec_deinit(intervals);
	vec_deinit(pieces);
}

static void test_nothing(void **state)
{
	struct intervals intervals = {0};
	struct pieces pieces = {0};

	add(&intervals, 5, 5, 1, 0);
	add(&intervals, 6, 5, 1, 0);
	add(&intervals, UINT64_MAX, 0, 1, 0);
	assert_int_equal(intervals.len, 0);
	assert_true(intervals_flatten(&intervals, &pieces));
	assert_int_equal(pieces.len, 0);
	assert_int_equal(pieces_find(&pieces, 5), PIECE_NONE);
	finish(&intervals, &pieces);
}

static void test_apart(void **state)
{
	struct intervals intervals = {0};
	struct pieces pieces = {0};

	add(&intervals, 30, 40, 3, 0);
	add(&intervals, 10, 20, 1, 0);
	add(&intervals, 20, 25, 2, 0);
	assert_true(intervals_flatten(&intervals, &pieces));
	assert_int_equal(pieces_find(&pieces, 9), PIECE_NONE);
	assert_int_equal(pieces_find(&pieces, 10), 1);
	assert_int_equal(pieces_find(&pieces, 19), 1);
	assert_int_equal(pieces_find(&pieces, 20), 2);
	assert_int_equal(pieces_find(&pieces, 25), PIECE_NONE);
	assert_int_equal(pieces_find(&pieces, 30), 3);
	assert_int_equal(pieces_find(&pieces, 39), 3);
	assert_int_equal(pieces_find(&pieces, 40), PIECE_NONE);
	assert_int_equal(pieces.data[pieces.len - 1].id, PIECE_NONE);
	finish(&intervals, &pieces);
}

/* The higher rank is seen; of equals the one that starts later, and of those the one that was added later. */
static void test_ranks(void **state)
{
	struct intervals intervals = {0};
	struct pieces pieces = {0};

	add(&intervals, 0, 100, 1, 5);
	add(&intervals, 10, 50, 2, 4);  /* never seen */
	add(&intervals, 20, 30, 3, 5);  /* starts later */
	add(&intervals, 60, 200, 4, 0); /* seen when the first one ends */
	add(&intervals, 70, 80, 5, 9);
	add(&intervals, 70, 75, 6, 9); /* added later */
	assert_true(intervals_flatten(&intervals, &pieces));
	assert_int_equal(pieces_find(&pieces, 15), 1);
	assert_int_equal(pieces_find(&pieces, 20), 3);
	assert_int_equal(pieces_find(&pieces, 30), 1);
	assert_int_equal(pieces_find(&pieces, 65), 1);
	assert_int_equal(pieces_find(&pieces, 74), 6);
	assert_int_equal(pieces_find(&pieces, 75), 5);
	assert_int_equal(pieces_find(&pieces, 80), 1);
	assert_int_equal(pieces_find(&pieces, 100), 4);
	assert_int_equal(pieces_find(&pieces, 200), PIECE_NONE);
	finish(&intervals, &pieces);
}

/* Neighbours with one id are one piece, and what was in `out` is replaced. */
static void test_joined(void **state)
{
	struct intervals intervals = {0};
	struct pieces pieces = {0};

	assert_true(vec_push(&pieces, (struct piece){.start = 1, .id = 77}));
	add(&intervals, 10, 20, 1, 0);
	add(&intervals, 20, 30, 1, 0);
	add(&intervals, 15, 25, 1, 3);
	assert_true(intervals_flatten(&intervals, &pieces));
	assert_int_equal(pieces.len, 2);
	assert_int_equal(pieces.data[0].start, 10);
	assert_int_equal(pieces.data[0].id, 1);
	assert_int_equal(pieces.data[1].start, 30);
	finish(&intervals, &pieces);
}

static void test_the_highest_addresses(void **state)
{
	struct intervals intervals = {0};
	struct pieces pieces = {0};

	add(&intervals, 0, UINT64_MAX, 1, 0);
	add(&intervals, UINT64_MAX - 1, UINT64_MAX, 2, 1);
	assert_true(intervals_flatten(&intervals, &pieces));
	assert_int_equal(pieces_find(&pieces, 0), 1);
	assert_int_equal(pieces_find(&pieces, UINT64_MAX - 2), 1);
	assert_int_equal(pieces_find(&pieces, UINT64_MAX - 1), 2);
	assert_int_equal(pieces_find(&pieces, UINT64_MAX), PIECE_NONE);
	finish(&intervals, &pieces);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

/* Sorting is stable, for few and for many, whatever digits the starts have. */
static void test_sort(void **state)
{
	static const size_t counts[] = {0, 1, 2, 31, 32, 33, 1000};
	static const uint64_t factors[] = {1, UINT64_C(1) << 20, UINT64_C(1) << 54};
	uint64_t seed = 7;

	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
			struct intervals intervals = {0};

			for (uint32_t i = 0; i < counts[n]; i++)
				add(&intervals, next_random(&seed) % 500 * factors[f], UINT64_MAX, i, 0);
			assert_true(intervals_sort(&intervals));
			assert_int_equal(intervals.len, counts[n]);
			for (size_t i = 1; i < intervals.len; i++) {
				const struct interval *a = &intervals.data[i - 1], *b = &intervals.data[i];

				assert_true(a->start < b->start || (a->start == b->start && a->id < b->id));
			}
			vec_deinit(&intervals);
		}
	}
}

enum { SPACE = 300 };

/* Who is seen at an address, asked of each interval. They are sorted by now: their place tells who came later. */
static uint32_t seen_at(const struct intervals *intervals, uint64_t at)
{
	const struct interval *seen = NULL;

	for (size_t i = 0; i < intervals->len; i++) {
		const struct interval *here = &intervals->data[i];

		if (at >= here->start && at < here->end && (!seen || here->rank >= seen->rank))
			seen = here;
	}
	return seen ? seen->id : PIECE_NONE;
}

static void test_random(void **state)
{
	uint64_t seed = 42;

	for (unsigned round = 0; round < 2000; round++) {
		struct intervals intervals = {0};
		struct pieces pieces = {0};
		uint64_t base = round % 3 == 0 ? UINT64_MAX - SPACE : 0;
		size_t count = next_random(&seed) % 60;

		for (uint32_t i = 0; i < count; i++) {
			uint64_t start = next_random(&seed) % SPACE,
				 len = next_random(&seed) % (round % 2 ? 20 : SPACE);

			add(&intervals, base + start, base + (start + len < SPACE ? start + len : SPACE), i % 9,
			    (uint32_t)next_random(&seed) % (1 + round % 5));
		}
		assert_true(intervals_flatten(&intervals, &pieces));
		for (uint64_t at = 0; at <= SPACE; at++)
			assert_int_equal(pieces_find(&pieces, base + at), seen_at(&intervals, base + at));
		for (size_t i = 1; i < pieces.len; i++) {
			assert_true(pieces.data[i - 1].start < pieces.data[i].start);
			assert_int_not_equal(pieces.data[i - 1].id, pieces.data[i].id);
		}
		finish(&intervals, &pieces);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_apart),
		cmocka_unit_test(test_ranks),   cmocka_unit_test(test_joined),
		cmocka_unit_test(test_sort),    cmocka_unit_test(test_the_highest_addresses),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("intervals", tests, NULL, NULL);
}
