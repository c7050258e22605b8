/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/safepoint.h"

/* As V8 11.3 writes it: how many entries, and how they are made: two bytes for places, one for numbers, no registers. */
static const uint8_t table[] = {
	3, 0, 0, 0, 1 | 2 << 4 | 1 << 7, 0, 0, 0,
	0x10, 0, 1, 0, 0,       /* at 16: entry 0, no trampoline */
	0x20, 0, 0, 0, 0,       /* at 32: none */
	0x00, 1, 7, 0x91, 1,    /* at 256: entry 6, trampoline at 400 */
};

static bool find(struct v8make_code made, uint32_t offset, struct v8_safepoint *out)
{
	struct v8_code code;

	assert_true(v8_code_find(&v8made.heap, made.start + offset, &code));
	return v8_safepoint_find(&v8made.heap, &code, made.start + offset, out);
}

static void test_find(void **state)
{
	struct v8make_code made = v8make_code(&v8made, V8MAKE_TURBOFAN, 512, table, sizeof(table));
	struct v8_safepoint found;

	v8make_finish(&v8made);
	assert_true(find(made, 16, &found));
	assert_int_equal(found.pc, 16);
	assert_int_equal(found.deopt, 0);
	assert_int_equal(found.trampoline, UINT32_MAX);
	assert_false(find(made, 17, &found)); /* nothing was called there */
	assert_false(find(made, 32, &found));
	assert_true(find(made, 256, &found));
	assert_int_equal(found.deopt, 6);
	assert_true(find(made, 400, &found)); /* the code is no longer valid */
	assert_int_equal(found.pc, 256);
	assert_int_equal(found.deopt, 6);
}

/* Entries have a byte more, and their header two numbers. */
static void test_maglev(void **state)
{
	static const uint8_t maglev[] = {
		2, 0, 0, 0, 1 | 1 << 4 | 1 << 7, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 0x10, 0, 0, 5, 0x20, 4, 0x41, 5,
	};
	struct v8make_code made = v8make_code(&v8made, V8MAKE_MAGLEV, 128, maglev, sizeof(maglev));
	struct v8_safepoint found;

	v8make_finish(&v8made);
	assert_false(find(made, 16, &found));
	assert_true(find(made, 32, &found));
	assert_int_equal(found.deopt, 3);
	assert_int_equal(found.trampoline, 64);
}

static void expect_refused(uint32_t len, uint32_t how)
{
	uint8_t bad[sizeof(table)];
	struct v8make_code made;
	struct v8_safepoint found;

	v8make_deinit(&v8made);
	v8make_init(&v8made);
	memcpy(bad, table, sizeof(bad));
	memcpy(bad, &len, sizeof(len));
	memcpy(bad + 4, &how, sizeof(how));
	made = v8make_code(&v8made, V8MAKE_TURBOFAN, 512, bad, sizeof(bad));
	v8make_finish(&v8made);
	assert_false(find(made, 16, &found));
}

static void test_damaged(void **state)
{
	uint32_t how = 1 | 2 << 4 | 1 << 7;

	expect_refused(0, how);
	expect_refused(UINT32_MAX, how);
	expect_refused(3, how & ~1u);             /* it tells of no entries */
	expect_refused(3, 1 | 1 << 7);            /* places of no bytes, */
	expect_refused(3, 1 | 5 << 4 | 1 << 7);   /* and of too many */
	expect_refused(3, 1 | 4 << 4 | 1 << 7);   /* places outside of the code */
	expect_refused(3, 1 | 2 << 4);
	expect_refused(3, how | 7 << 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_find), TEST(test_maglev), TEST(test_damaged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
