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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_put_and_find),
		cmocka_unit_test(test_extreme_keys),
	};

	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
