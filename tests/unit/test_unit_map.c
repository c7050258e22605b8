/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "dwarf/unit_map.h"

enum { BASE = 0x400000 };

static const struct map_piece pieces[] = {{0x10, 0}, {0x20, 1}, {0x30, 0}, {0x40, MAP_NONE}, {0x50, 9}};
static const struct map_scope scopes[] = {{.parent = MAP_NONE}, {.parent = 0}};
static const struct map_row rows[] = {
	{.start = 0x10, .line = 5}, {.start = 0x18, .line = 7}, {.start = 0x20, .line = 0},
	{.start = 0x28, .line = 8}, {.start = 0x28, .line = 9}, {.start = 0x30, .line = 0},
};

static struct unit_map make(void)
{
	return (struct unit_map){
		.base = BASE,
		.pieces = pieces,
		.npieces = sizeof(pieces) / sizeof(pieces[0]),
		.scopes = scopes,
		.nscopes = sizeof(scopes) / sizeof(scopes[0]),
		.rows = rows,
		.nrows = sizeof(rows) / sizeof(rows[0]),
	};
}

static void test_scope(void **state)
{
	struct unit_map map = make();

	assert_int_equal(unit_map_scope(&map, BASE), MAP_NONE);
	assert_int_equal(unit_map_scope(&map, BASE + 0xf), MAP_NONE);
	assert_int_equal(unit_map_scope(&map, BASE + 0x10), 0);
	assert_int_equal(unit_map_scope(&map, BASE + 0x1f), 0);
	assert_int_equal(unit_map_scope(&map, BASE + 0x20), 1);
	assert_int_equal(unit_map_scope(&map, BASE + 0x3f), 0);
	assert_int_equal(unit_map_scope(&map, BASE + 0x40), MAP_NONE);
	assert_int_equal(unit_map_scope(&map, BASE + 0x50), MAP_NONE); /* a scope that is not there: a damaged cache */
}

static uint32_t line_at(const struct unit_map *map, uint64_t at)
{
	const struct map_row *row = unit_map_row(map, at);

	return row ? row->line : 0;
}

static void test_row(void **state)
{
	struct unit_map map = make();

	assert_int_equal(line_at(&map, BASE + 0xf), 0);
	assert_int_equal(line_at(&map, BASE + 0x10), 5);
	assert_int_equal(line_at(&map, BASE + 0x17), 5);
	assert_int_equal(line_at(&map, BASE + 0x18), 7);
	assert_int_equal(line_at(&map, BASE + 0x20), 0);
	assert_int_equal(line_at(&map, BASE + 0x2f), 9); /* of two rows at one address the last */
	assert_int_equal(line_at(&map, BASE + 0x30), 0);
}

/* Addresses are 32-bit offsets: what is further away must not come back as something near. */
static void test_far_away(void **state)
{
	static const uint64_t far[] = {0, BASE - 1, BASE + 0x10 + (UINT64_C(1) << 32), UINT64_MAX, UINT64_MAX - BASE};
	struct unit_map map = make();
	struct unit_map empty = {.base = BASE};

	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		assert_int_equal(unit_map_scope(&map, far[i]), MAP_NONE);
		assert_null(unit_map_row(&map, far[i]));
	}
	assert_int_equal(unit_map_scope(&empty, BASE + 0x10), MAP_NONE);
	assert_null(unit_map_row(&empty, BASE + 0x10));
	unit_map_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scope),
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_far_away),
	};

	return cmocka_run_group_tests_name("unit_map", tests, NULL, NULL);
}
