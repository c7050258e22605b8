/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/baseline.h"

/* Bytecodes of V8 11.3: none of operands, one of one, the same widened, twice and four times, and the first again. */
enum { WIDE = 0, EXTRA_WIDE = 1, LDA_ZERO = 12, LDA_SMI = 13 };
static const uint8_t bytecodes[] = {LDA_ZERO, LDA_SMI, 5, WIDE, LDA_SMI, 5, 5, EXTRA_WIDE, LDA_SMI, 5, 5, 5, 5, LDA_ZERO};
/* Before them there are 16 bytes of instructions, then 8, 4, 132, 4 and none. */
static const uint8_t lengths[] = {16, 8, 4, 0x84, 1, 4, 0};

static bool find(const void *bytes, size_t len, const void *table, size_t table_len, uint32_t offset, int64_t *out)
{
	struct v8make_code made;
	struct v8_code code;
	uint64_t bytecode, positions;

	v8make_deinit(&v8made);
	v8make_init(&v8made);
	made = v8make_code(&v8made, V8MAKE_BASELINE, 200, NULL, 0);
	bytecode = v8make_bytecode(&v8made, bytes, len, 0);
	positions = v8make_bytes(&v8made, table, table_len);
	v8make_put(&v8made, made.object, 24, positions);
	v8make_finish(&v8made);
	assert_true(v8_code_find(&v8made.heap, made.start + offset, &code));
	return v8_baseline_find(&v8made.heap, &code, bytecode, made.start + offset, out);
}

static void expect(uint32_t offset, int32_t bytecode)
{
	int64_t found;

	assert_true(find(bytecodes, sizeof(bytecodes), lengths, sizeof(lengths), offset, &found));
	assert_int_equal(found, bytecode);
}

static void test_find(void **state)
{
	int64_t found;

	expect(0, -1);
	expect(16, -1);
	expect(17, 0);
	expect(24, 0);
	expect(28, 1);
	expect(29, 3);
	expect(160, 3);
	expect(164, 7);
	assert_false(find(bytecodes, sizeof(bytecodes), lengths, sizeof(lengths), 165, &found));
}

/* A table that is not one of this bytecode. */
static void test_others(void **state)
{
	static const uint8_t longer[] = {16, 8, 4, 0x84, 1, 4, 0, 0};
	static const uint8_t behind[] = {16, 8, 4, 0x84, 1, 4, 120};
	static const uint8_t no_bytecode[] = {LDA_ZERO, 0xff};
	int64_t found;

	for (size_t len = 0; len < sizeof(lengths); len++)
		assert_false(find(bytecodes, sizeof(bytecodes), lengths, len, 20, &found));
	for (size_t len = 0; len < sizeof(bytecodes); len++)
		assert_false(find(bytecodes, len, lengths, sizeof(lengths), 20, &found));
	assert_false(find(bytecodes, sizeof(bytecodes), longer, sizeof(longer), 20, &found));
	assert_false(find(bytecodes, sizeof(bytecodes), behind, sizeof(behind), 20, &found));
	assert_false(find(no_bytecode, sizeof(no_bytecode), lengths, 3, 20, &found));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_find), TEST(test_others)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
