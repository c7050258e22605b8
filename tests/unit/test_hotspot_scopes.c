/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "hotspot_fake.h"
#include "runtime/hotspot/scopes.h"

static struct fake fake;
static struct code_cache cache;

enum {
	/* in the blob, whose code ends before */
	PCS = 0x300,
	NPCS = 5,
	METADATA = 0x400,
	SCOPES = 0x440,
	OUTER = 1, /* offsets of scopes; 0 is none */
	INNER = 8,
	METHOD_A = FAKE_DATA + 0x3000,
	METHOD_B = FAKE_DATA + 0x3100,
	SEGMENTS = 12,
};

static uint64_t start;

static void put_pc(unsigned i, int offset, unsigned scope)
{
	fake_put(&fake, start + PCS + FAKE_PC_DESC * i, (uint64_t)(int64_t)offset, 4);
	fake_put(&fake, start + PCS + FAKE_PC_DESC * i + 4, scope, 4);
}

static void put_scope(unsigned at, unsigned sender, unsigned method, unsigned bci)
{
	fake_put(&fake, start + SCOPES + at, sender, 1);
	fake_put(&fake, start + SCOPES + at + 1, method, 1);
	fake_put(&fake, start + SCOPES + at + 2, bci, 1);
}

static int set_up(void **state)
{
	fake_init(&fake);
	start = fake_blob(&fake, 1, SEGMENTS, "nmethod", 6);
	fake_put(&fake, start + FAKE_BLOB_CODE_END, start + 0x2c0, 8);
	fake_put(&fake, start + FAKE_NM_LEVEL, 4, 1);
	fake_put(&fake, start + FAKE_NM_PCS, PCS, 4);
	fake_put(&fake, start + FAKE_NM_DEPENDENCIES, PCS + NPCS * FAKE_PC_DESC, 4);
	fake_put(&fake, start + FAKE_NM_METADATA, METADATA, 4);
	fake_put(&fake, start + FAKE_NM_SCOPES, start + SCOPES, 8);
	fake_put(&fake, start + FAKE_NM_DEOPT, start + 0x2b0, 8);
	fake_put(&fake, start + FAKE_NM_ORIG_PC, 24, 4);
	fake_put(&fake, start + METADATA, METHOD_A, 8);
	fake_put(&fake, start + METADATA + 8, METHOD_B, 8);
	put_pc(0, -1, 0);
	put_pc(1, 0x20, OUTER);
	put_pc(2, 0x40, INNER);
	put_pc(3, 0x60, OUTER);
	put_pc(4, 0x7fffffff, 0);
	put_scope(OUTER, 0, 1, 5);
	put_scope(INNER, OUTER, 2, 0);
	return 0;
}

static int tear_down(void **state)
{
	code_cache_deinit(&cache);
	fake_deinit(&fake);
	return 0;
}

static const struct blob *load(void)
{
	const struct blob *blob;

	fake_load(&fake);
	code_cache_init(&cache, &fake.layout, &fake.pages);
	blob = code_cache_find(&cache, start + FAKE_CODE);
	assert_non_null(blob);
	return blob;
}

static bool find(unsigned offset, struct scopes *out)
{
	const struct blob *blob = load();

	return scopes_find(&cache, blob, blob->code_begin + offset, out);
}

static void test_inlined(void **state)
{
	struct scopes scopes;

	assert_true(find(0x40, &scopes));
	assert_int_equal(scopes.len, 2);
	assert_false(scopes.approximate);
	assert_string_equal(scopes.tier, "C2");
	assert_int_equal(scopes.data[0].method, METHOD_B);
	assert_int_equal(scopes.data[0].bci, -1);
	assert_int_equal(scopes.data[1].method, METHOD_A);
	assert_int_equal(scopes.data[1].bci, 4);
}

/* Where a thread was interrupted only the method that was compiled is certain. */
static void test_between_entries(void **state)
{
	struct scopes scopes;

	assert_true(find(0x24, &scopes));
	assert_true(scopes.approximate);
	assert_int_equal(scopes.len, 1);
	assert_int_equal(scopes.data[0].method, METHOD_A);
}

/* Behind all entries are slow paths, whose calls tell nothing: the method is certain, and nothing else. */
static void test_behind_entries(void **state)
{
	struct scopes scopes;

	fake_put(&fake, start + FAKE_NM_METHOD, METHOD_B, 8);
	assert_true(find(0x64, &scopes));
	assert_true(scopes.approximate);
	assert_int_equal(scopes.len, 1);
	assert_int_equal(scopes.data[0].method, METHOD_B);
	assert_int_equal(scopes.data[0].bci, INT32_MAX);
	assert_string_equal(scopes.tier, "C2");
}

static void test_tiers(void **state)
{
	struct scopes scopes;

	fake_put(&fake, start + FAKE_NM_LEVEL, 3, 1);
	assert_true(find(0x20, &scopes));
	assert_string_equal(scopes.tier, "C1");
}

/* From 23 on the tables are apart from the blob, and from 25 on the methods, too. */
static void test_tables_apart(void **state)
{
	enum { TABLES = FAKE_DATA + 0x4000, METHODS = FAKE_DATA + 0x5000 };
	struct scopes scopes;

	fake.layout.facts[HS_NM_SCOPES_DATA_BEGIN] = HS_ABSENT;
	fake.layout.facts[HS_NM_DEPENDENCIES_OFFSET] = HS_ABSENT;
	fake.layout.facts[HS_NM_METADATA_OFFSET] = HS_ABSENT;
	fake_field(&fake, HS_NM_IMMUTABLE_DATA, 88, 8, false);
	fake_field(&fake, HS_NM_SCOPES_DATA_OFFSET, 96, 4, true);
	fake_field(&fake, HS_BLOB_MUTABLE_DATA, 104, 8, false);
	fake_field(&fake, HS_BLOB_RELOCATION_SIZE, 112, 4, true);
	fake_put(&fake, start + 88, TABLES, 8);
	fake_put(&fake, start + 96, 0x150, 4);
	fake_put(&fake, start + 104, METHODS - 0x20, 8);
	fake_put(&fake, start + 112, 0x20, 4);
	fake_put(&fake, start + FAKE_NM_PCS, 0x100, 4);
	memcpy(fake.bytes + (TABLES + 0x100 - FAKE_BASE), fake.bytes + (start + PCS - FAKE_BASE), NPCS * FAKE_PC_DESC);
	memcpy(fake.bytes + (TABLES + 0x150 - FAKE_BASE), fake.bytes + (start + SCOPES - FAKE_BASE), 16);
	memcpy(fake.bytes + (METHODS - FAKE_BASE), fake.bytes + (start + METADATA - FAKE_BASE), 16);
	memset(fake.bytes + (start + PCS - FAKE_BASE), 0, 0x1c0);
	assert_true(find(0x40, &scopes));
	assert_int_equal(scopes.len, 2);
	assert_int_equal(scopes.data[1].method, METHOD_A);
}

static void test_deoptimized(void **state)
{
	const struct blob *blob = load();
	uint64_t slot;

	assert_false(scopes_is_deoptimized(&cache, blob, start + 0x2ac, &slot));
	assert_true(scopes_is_deoptimized(&cache, blob, start + 0x2b0, &slot));
	assert_int_equal(slot, 24);
}

static void test_hostile(void **state)
{
	static const struct {
		unsigned at, size;
		uint64_t value;
	} bad[] = {
		{FAKE_NM_PCS, 4, UINT32_MAX},
		{FAKE_NM_DEPENDENCIES, 4, 0},
		{FAKE_NM_DEPENDENCIES, 4, 0x7fffffff},
		{FAKE_NM_SCOPES, 8, UINT64_MAX - 10},
		{FAKE_NM_METADATA, 4, 0x7fffffff},
		{SCOPES + INNER, 1, INNER},      /* its own caller */
		{SCOPES + INNER, 1, INNER + 1},  /* goes forward */
		{SCOPES + INNER + 1, 1, 0},      /* no method */
		{SCOPES + INNER + 1, 1, 100},    /* beyond the list: no pointer is there */
		{METADATA + 8, 8, METHOD_B + 1}, /* not aligned */
		{PCS + 2 * FAKE_PC_DESC + 4, 4, 0x7fffffff},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scopes scopes;

		set_up(NULL);
		fake_put(&fake, start + bad[i].at, bad[i].value, bad[i].size);
		assert_false(find(0x40, &scopes));
		tear_down(NULL);
	}
	set_up(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_inlined, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_between_entries, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_behind_entries, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tiers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tables_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deoptimized, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
