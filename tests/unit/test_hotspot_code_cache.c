/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "hotspot_fake.h"
#include "runtime/hotspot/code_cache.h"

static struct fake fake;

static int set_up(void **state)
{
	fake_init(&fake);
	return 0;
}

static int tear_down(void **state)
{
	fake_deinit(&fake);
	return 0;
}

static struct code_cache make(void)
{
	struct code_cache cache;

	fake_load(&fake);
	code_cache_init(&cache, &fake.layout, &fake.pages);
	return cache;
}

/* Each byte of the segment map leads back towards the start; a long blob takes several hops. */
static void test_segment_map(void **state)
{
	uint64_t small = fake_blob(&fake, 1, 4, "nmethod", 6), large = fake_blob(&fake, 8, 200, "native nmethod", 10);
	struct code_cache cache;
	const struct blob *blob;

	fake_put(&fake, FAKE_SEGMAP + 8 + 150, 50, 1); /* not straight to the start */
	cache = make();
	blob = code_cache_find(&cache, small + FAKE_CODE + 0x100);
	assert_non_null(blob);
	assert_int_equal(blob->start, small);
	assert_int_equal(blob->kind, BLOB_COMPILED);
	assert_int_equal(blob->frame_size, 6);
	assert_int_equal(blob->frame_complete, 16);
	blob = code_cache_find(&cache, FAKE_HEAP + (8 + 150) * 128 + 5);
	assert_non_null(blob);
	assert_int_equal(blob->start, large);
	assert_int_equal(blob->kind, BLOB_NATIVE);
	assert_int_equal(cache.blobs.len, 2);
	assert_ptr_equal(code_cache_find(&cache, large + FAKE_CODE), &cache.blobs.data[1]); /* known by now */
	code_cache_deinit(&cache);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *name;
		enum blob_kind kind;
	} kinds[] = {{"nmethod", BLOB_COMPILED}, {"native nmethod", BLOB_NATIVE}, {"Interpreter", BLOB_INTERPRETER}, {"StubRoutines (1)", BLOB_STUB}};
	struct code_cache cache;
	uint64_t starts[4];

	for (unsigned i = 0; i < 4; i++)
		starts[i] = fake_blob(&fake, 1 + 4 * i, 4, kinds[i].name, i < 2 ? 4 : -1);
	cache = make();
	for (unsigned i = 0; i < 4; i++) {
		const struct blob *blob = code_cache_find(&cache, starts[i] + FAKE_CODE);

		assert_non_null(blob);
		assert_int_equal(blob->kind, kinds[i].kind);
		assert_int_equal(blob->frame_size, i < 2 ? 4 : 0);
		assert_string_equal(blob->name, kinds[i].name);
	}
	code_cache_deinit(&cache);
}

/* Nothing is there, or nothing that could be code. */
static void test_no_blob(void **state)
{
	uint64_t start = fake_blob(&fake, 1, 4, "nmethod", 6);
	struct code_cache cache = make();

	assert_false(code_cache_owns(&cache, FAKE_HEAP - 1));
	assert_false(code_cache_owns(&cache, FAKE_HEAP_END));
	assert_true(code_cache_owns(&cache, FAKE_HEAP));
	assert_null(code_cache_find(&cache, FAKE_HEAP_END));
	assert_null(code_cache_find(&cache, FAKE_HEAP + 0x7000)); /* free */
	assert_null(code_cache_find(&cache, start));              /* its header */
	assert_null(code_cache_find(&cache, start + 4 * 128 - FAKE_BLOCK - 1)); /* its data */
	code_cache_deinit(&cache);
}

/* One thing at a time that cannot be. */
static void test_hostile_blobs(void **state)
{
	static const struct {
		unsigned offset, size;
		uint64_t value;
	} bad[] = {
		{FAKE_BLOB_SIZE, 4, 0},
		{FAKE_BLOB_SIZE, 4, 0x7fffffff},
		{FAKE_BLOB_SIZE, 4, UINT32_MAX},
		{FAKE_BLOB_CODE_BEGIN, 8, 0},
		{FAKE_BLOB_CODE_BEGIN, 8, UINT64_MAX},
		{FAKE_BLOB_CODE_END, 8, UINT64_MAX},
		{FAKE_BLOB_CODE_END, 8, 0},
		{FAKE_BLOB_FRAME_SIZE, 4, 0},
		{FAKE_BLOB_FRAME_SIZE, 4, 1},
		{FAKE_BLOB_FRAME_SIZE, 4, UINT32_MAX},
		{FAKE_BLOB_FRAME_SIZE, 4, 0x7fffffff},
		{FAKE_BLOB_NAME, 8, UINT64_MAX - 3},
		{FAKE_BLOB_NAME, 8, FAKE_BASE + FAKE_SIZE - 1}, /* an empty name */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct code_cache cache;
		uint64_t start;

		fake_init(&fake);
		start = fake_blob(&fake, 1, 4, "nmethod", 6);
		fake_put(&fake, start + bad[i].offset, bad[i].value, bad[i].size);
		cache = make();
		assert_null(code_cache_find(&cache, start + FAKE_CODE));
		code_cache_deinit(&cache);
		fake_deinit(&fake);
	}
	fake_init(&fake);
}

/* A map that leads round in a circle, or before its beginning. */
static void test_hostile_map(void **state)
{
	uint64_t start = fake_blob(&fake, 100, 100, "nmethod", 6);
	struct code_cache cache;

	for (unsigned i = 0; i < 200; i++)
		fake_put(&fake, FAKE_SEGMAP + i, 1, 1);
	cache = make();
	assert_null(code_cache_find(&cache, start + FAKE_CODE)); /* more hops than any blob needs */
	code_cache_deinit(&cache);
	fake_put(&fake, FAKE_SEGMAP + 101, 200, 1);
	assert_null(code_cache_find(&cache, start + FAKE_CODE));
	code_cache_deinit(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_segment_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_blob, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_blobs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_map, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
