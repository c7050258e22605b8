/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "model/maps.h"

static void test_find(void **state)
{
	struct map_entry entries[] = {
		{.start = 0x1000, .end = 0x3000},
		{.start = 0x3000, .end = 0x4000},
		{.start = 0x8000, .end = 0x9000},
		{.start = 0xfffffffffffff000, .end = 0xffffffffffffffff},
	};
	struct maps maps = {.data = entries, .len = 4};

	assert_null(maps_find(&maps, 0));
	assert_null(maps_find(&maps, 0xfff));
	assert_ptr_equal(maps_find(&maps, 0x1000), &entries[0]);
	assert_ptr_equal(maps_find(&maps, 0x2fff), &entries[0]);
	assert_ptr_equal(maps_find(&maps, 0x3000), &entries[1]);
	assert_null(maps_find(&maps, 0x4000));
	assert_ptr_equal(maps_find(&maps, 0x8abc), &entries[2]);
	assert_ptr_equal(maps_find(&maps, 0xfffffffffffffffe), &entries[3]);
	assert_null(maps_find(&maps, UINT64_MAX));
}

static void test_empty(void **state)
{
	struct maps maps = {0};

	assert_null(maps_find(&maps, 0x1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_empty)};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
