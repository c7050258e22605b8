/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "base/map.h"

static void test_empty(void **state)
{
	struct u64map map = {0};

	assert_null(u64map_find(&map, 0));
	assert_null(u64map_find(&map, 1));
	u64map_deinit(&map);
}

static void test_put_and_find(void **state)
{
	struct u64map map = {0};
	bool created;

	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t *value = u64map_put(&map, i << 12, &created);

		assert_non_null(value);
		assert_true(created);
		assert_int_equal(*value, 0);
		*value = i + 1;
	}
	assert_int_equal(map.len, 10000);
	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(*u64map_find(&map, i << 12), i + 1);
		assert_null(u64map_find(&map, (i << 12) + 1));
	}
	assert_int_equal(*u64map_put(&map, 0, &created), 1);
	assert_false(created);
	assert_int_equal(map.len, 10000);
	u64map_deinit(&map);
	assert_null(u64map_find(&map, 0));
}

static void test_extreme_keys(void **state)
{
	struct u64map map = {0};
	bool created;

	*u64map_put(&map, 0, &created) = 10;
	*u64map_put(&map, UINT64_MAX, &created) = 11;
	assert_int_equal(*u64map_find(&map, 0), 10);
	assert_int_equal(*u64map_find(&map, UINT64_MAX), 11);
	u64map_deinit(&map);
}

/* What was there before stays, and nothing moves until as many are there as room was made for. */
static void test_reserve(void **state)
{
	struct u64map map = {0};
	const uint64_t *first;
	bool created;

	*u64map_put(&map, 0, &created) = 10;
	assert_true(u64map_reserve(&map, 1000));
	assert_int_equal(map.len, 1);
	first = u64map_find(&map, 0);
	for (uint64_t i = 1; i < 1000; i++)
		assert_non_null(u64map_put(&map, i, &created));
	assert_ptr_equal(u64map_find(&map, 0), first);
	assert_int_equal(*first, 10);
	assert_true(u64map_reserve(&map, 5)); /* which it has long since */
	assert_ptr_equal(u64map_find(&map, 0), first);
	assert_int_equal(map.len, 1000);
	u64map_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_put_and_find),
		cmocka_unit_test(test_extreme_keys),
		cmocka_unit_test(test_reserve),
	};

	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
