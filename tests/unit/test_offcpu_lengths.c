/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "model/offcpu.h"

static void add_row(struct offcpu_profile *profile, const struct offcpu_lengths *lengths)
{
	struct offcpu_row row = {.lengths = offcpu_profile_add_lengths(profile, lengths)};

	assert_true(row.lengths);
	for (size_t i = 0; i < lengths->len; i++)
		for (uint64_t n = 0; n < lengths->data[i].count; n++)
			offcpu_sum_add(&row.sum, lengths->data[i].ns, 0);
	assert_true(offcpu_profile_add_row(profile, row));
}

static void expect(const struct offcpu_profile *profile, size_t row, uint64_t p50, uint64_t p99)
{
	struct offcpu_lengths all = {0};
	struct offcpu_quantiles quantiles;

	assert_true(offcpu_gather_lengths(&all, profile, &profile->rows.data[row]));
	quantiles = offcpu_take_quantiles(&all, &profile->rows.data[row].sum);
	assert_true(quantiles.are_known);
	assert_int_equal(quantiles.p50_ns, p50);
	assert_int_equal(quantiles.p99_ns, p99);
	assert_int_equal(all.len, 0); /* for the next */
	offcpu_lengths_deinit(&all);
}

static void test_added_in_any_order(void **state)
{
	static const uint64_t order[] = {50, 10, 90, 10, 70, 20, 90, 50, 50};
	struct offcpu_lengths lengths = {0};
	uint64_t count = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_true(offcpu_lengths_add(&lengths, order[i], i + 1));
	assert_int_equal(lengths.len, 5);
	for (size_t i = 0; i < lengths.len; i++) {
		assert_true(!i || lengths.data[i - 1].ns < lengths.data[i].ns);
		count += lengths.data[i].count;
	}
	assert_int_equal(count, 45);
	assert_int_equal(lengths.data[0].count, 2 + 4);
	offcpu_lengths_deinit(&lengths);
}

/* The smallest length that so many of the waits do not exceed. */
static void test_quantiles(void **state)
{
	struct offcpu_length one[] = {{7, 1}}, two[] = {{7, 1}, {9, 1}},
			     hundred[] = {{1, 49}, {2, 1}, {3, 48}, {4, 1}, {5, 1}},
			     many[] = {{1, 990}, {8, 9}, {9, 1}}, more[] = {{1, 989}, {8, 10}, {9, 1}};
	const struct offcpu_lengths all[] = {{.data = one, .len = 1},
					     {.data = two, .len = 2},
					     {.data = hundred, .len = 5},
					     {.data = many, .len = 3},
					     {.data = more, .len = 3}};
	struct offcpu_profile profile = {0};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		add_row(&profile, &all[i]);
	expect(&profile, 0, 7, 7);
	expect(&profile, 1, 7, 9);
	expect(&profile, 2, 2, 4);
	expect(&profile, 3, 1, 1);
	expect(&profile, 4, 1, 8);
	offcpu_profile_deinit(&profile);
}

/* A length stands for its bucket: what is known exactly counts. */
static void test_within_min_and_max(void **state)
{
	struct offcpu_length waits[] = {{1000, 60}, {2000, 60}};
	const struct offcpu_lengths lengths = {.data = waits, .len = 2};
	struct offcpu_profile profile = {0};

	add_row(&profile, &lengths);
	profile.rows.data[0].sum.min_ns = 1010;
	profile.rows.data[0].sum.max_ns = 1950;
	expect(&profile, 0, 1010, 1950);
	offcpu_profile_deinit(&profile);
}

static void test_joined(void **state)
{
	struct offcpu_length a[] = {{1, 60}}, b[] = {{5, 30}}, c[] = {{3, 9}, {9, 1}}, d[] = {{2, 1}};
	const struct offcpu_lengths all[] = {
		{.data = a, .len = 1}, {.data = b, .len = 1}, {.data = c, .len = 2}, {.data = d, .len = 1}};
	struct offcpu_profile profile = {0};
	struct offcpu_row *rows;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		add_row(&profile, &all[i]);
	rows = profile.rows.data;
	offcpu_profile_join_lengths(&profile, &rows[1], &rows[2]);
	offcpu_sum_merge(&rows[1].sum, &rows[2].sum);
	expect(&profile, 1, 5, 9);
	offcpu_profile_join_lengths(&profile, &rows[0], &rows[1]);
	offcpu_sum_merge(&rows[0].sum, &rows[1].sum);
	expect(&profile, 0, 1, 5);
	expect(&profile, 3, 2, 2); /* has nothing to do with it */
	offcpu_profile_deinit(&profile);
}

/* Lengths of all waits, or nothing is said of them. */
static void test_not_known(void **state)
{
	struct offcpu_length waits[] = {{1000, 2}};
	const struct offcpu_lengths lengths = {.data = waits, .len = 1};
	struct offcpu_lengths all = {0};
	struct offcpu_profile profile = {0};

	add_row(&profile, &lengths);
	profile.rows.data[0].sum.count++;
	assert_true(offcpu_gather_lengths(&all, &profile, &profile.rows.data[0]));
	assert_false(offcpu_take_quantiles(&all, &profile.rows.data[0].sum).are_known);
	profile.rows.data[0].lengths = 0;
	assert_true(offcpu_gather_lengths(&all, &profile, &profile.rows.data[0]));
	assert_int_equal(all.len, 0);
	offcpu_lengths_deinit(&all);
	offcpu_profile_deinit(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_added_in_any_order), cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_within_min_and_max), cmocka_unit_test(test_joined),
		cmocka_unit_test(test_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
