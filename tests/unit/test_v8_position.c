/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/position.h"

static bool find(const void *table, size_t len, int64_t offset, uint32_t *out)
{
	struct cursor c = cursor_init(table, len);

	return position_find(&c, offset, out);
}

/*
 * As V8 11.3 wrote it: the function's entry at 10, a statement at 20 for bytecode 3, an expression at 15 for bytecode 8, one
 * at 1000 for 300.
 */
static const uint8_t table[] = {
	0x01, 0x2c,             /* -1 → the entry, 22 */
	0x08, 0x28,             /* +4, +20 */
	0x0b, 0x13,             /* +5 of an expression, -10 */
	0xc9, 0x04, 0xe4, 0x1e, /* +292, +1970 */
};

static void test_find(void **state)
{
	uint32_t position;

	assert_true(find(table, sizeof(table), 0, &position));
	assert_int_equal(position, 10);
	assert_true(find(table, sizeof(table), 2, &position));
	assert_int_equal(position, 10);
	assert_true(find(table, sizeof(table), 3, &position));
	assert_int_equal(position, 20);
	assert_true(find(table, sizeof(table), 7, &position));
	assert_int_equal(position, 20);
	assert_true(find(table, sizeof(table), 8, &position));
	assert_int_equal(position, 15);
	assert_true(find(table, sizeof(table), 299, &position));
	assert_int_equal(position, 15);
	assert_true(find(table, sizeof(table), 300, &position));
	assert_int_equal(position, 1000);
}

static void test_damaged(void **state)
{
	static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	static const uint8_t huge[] = {0x00, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	static const uint8_t negative[] = {0x00, 0x29};
	static const uint8_t nowhere[] = {0x00, 0x00};
	uint32_t position;

	assert_false(find(table, 0, 5, &position));
	assert_false(find(table, 3, 5, &position));
	assert_false(find(endless, sizeof(endless), 5, &position));
	assert_false(find(huge, sizeof(huge), 5, &position));
	assert_false(find(negative, sizeof(negative), 5, &position));
	assert_false(find(nowhere, sizeof(nowhere), 5, &position));
}

static uint64_t make_bytecode(int32_t len, uint64_t positions)
{
	uint64_t bytecode = v8make_object(&v8made, V8MAKE_TYPE_BYTECODE, 64);

	v8make_put(&v8made, bytecode, 8, v8make_small(len));
	v8make_put(&v8made, bytecode, 32, positions);
	return bytecode;
}

static void test_bytecode(void **state)
{
	uint64_t bytes = v8make_bytes(&v8made, table, sizeof(table)), bytecode = make_bytecode(400, bytes);
	uint64_t undefined = v8make_object(&v8made, V8MAKE_TYPE_ODDBALL, 16), without = make_bytecode(400, undefined);
	uint32_t position;

	v8make_finish(&v8made);
	assert_true(position_of_bytecode(&v8made.heap, bytecode, 8, &position));
	assert_int_equal(position, 15);
	assert_true(position_of_bytecode(&v8made.heap, bytecode, -1, &position)); /* the function's entry */
	assert_int_equal(position, 10);
	assert_false(position_of_bytecode(&v8made.heap, bytecode, -2, &position));
	assert_false(position_of_bytecode(&v8made.heap, bytecode, 400, &position));
	assert_false(position_of_bytecode(&v8made.heap, bytes, 8, &position));
	assert_false(position_of_bytecode(&v8made.heap, without, 8, &position));
	v8made.layout.facts[V8_MAJOR] = 14; /* the table is elsewhere */
	assert_false(position_of_bytecode(&v8made.heap, bytecode, 8, &position));
}

static void test_hostile_table(void **state)
{
	uint64_t bytes = v8make_bytes(&v8made, table, sizeof(table)), bytecode = make_bytecode(INT32_MAX, bytes);
	uint32_t position;

	v8make_put(&v8made, bytes, 8, v8make_small(INT32_MAX));
	v8make_finish(&v8made);
	assert_false(position_of_bytecode(&v8made.heap, bytecode, 8, &position));
}

static void expect_line(uint64_t source, uint32_t position, uint32_t line)
{
	uint32_t found;

	assert_true(position_line(&v8made.heap, source, position, &found));
	assert_int_equal(found, line);
}

static void test_lines(void **state)
{
	static const uint16_t wide[] = {'a', 0x2028, 'b', 0x2029, 'c', '\n', 'd', 0x0a00};
	uint64_t plain = v8make_string(&v8made, "a\nb\r\nc\rd\n"), other = v8make_wide_string(&v8made, wide, 8);
	uint32_t line;

	v8make_finish(&v8made);
	expect_line(plain, 0, 1);
	expect_line(plain, 1, 1);
	expect_line(plain, 2, 2);
	expect_line(plain, 5, 3);
	expect_line(plain, 7, 4);
	expect_line(plain, 9, 5);
	assert_false(position_line(&v8made.heap, plain, 10, &line));
	expect_line(other, 2, 2);
	expect_line(other, 4, 3);
	expect_line(other, 6, 4);
	expect_line(other, 8, 4);
}

/* What was counted before counts, unless another source is there now. */
static void test_index(void **state)
{
	struct line_index index = {0};
	char text[3000] = {0};
	uint64_t source;
	uint32_t counted, found;

	for (size_t i = 0; i + 1 < sizeof(text); i++)
		text[i] = i % 7 == 0 ? '\r' : i % 7 == 1 ? '\n' : 'x'; /* some of these pairs are in two pieces */
	source = v8make_string(&v8made, text);
	v8make_finish(&v8made);
	for (uint32_t back = 0; back < 2; back++)
		for (uint32_t i = 0; i + 1 < sizeof(text); i += 3) {
			uint32_t at = back ? (uint32_t)sizeof(text) - 2 - i : i;

			v8made.heap.lines = NULL;
			assert_true(position_line(&v8made.heap, source, at, &counted));
			v8made.heap.lines = &index;
			assert_true(position_line(&v8made.heap, source, at, &found));
			assert_int_equal(found, counted);
		}
	assert_int_equal(index.sources.len, 1);
	assert_int_equal(index.pieces, index.sources.data[0].before.len);
	memset(v8made.bytes + (source - 1 - V8MAKE_BASE) + 16, '\n', sizeof(text) - 1);
	expect_line(source, 2999, 3000);
	assert_int_equal(index.sources.len, 1);
	line_index_deinit(&index);
}

/* More than is read of a script for its lines. */
static void test_long_source(void **state)
{
	uint64_t source = v8make_pair(&v8made, V8MAKE_TYPE_EXTERNAL_ONE, INT32_MAX, 0, V8MAKE_BASE);
	struct ask wants = {0};
	uint32_t line;

	v8make_finish(&v8made);
	assert_false(position_line(&v8made.heap, source, INT32_MAX, &line));
	assert_true(pages_want(&v8made.pages, &wants));
	assert_int_equal(wants.len, 0);
	ask_deinit(&wants);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_find),	  TEST(test_damaged), TEST(test_bytecode),
		TEST(test_hostile_table), TEST(test_lines),   TEST(test_index),
		TEST(test_long_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
