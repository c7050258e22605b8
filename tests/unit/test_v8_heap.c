/* SPDX-License-Identifier: MIT */
#include "v8make.h"

static void expect(uint64_t string, const char *text)
{
	char found[HEAP_TEXT + 1];

	assert_true(heap_string(&v8made.heap, string, found));
	assert_string_equal(found, text);
}

static void expect_none(uint64_t string)
{
	char found[HEAP_TEXT + 1];

	assert_false(heap_string(&v8made.heap, string, found));
}

static void test_values(void **state)
{
	assert_true(heap_is_small(v8make_small(-7)));
	assert_int_equal(heap_small(v8make_small(-7)), -7);
	assert_false(heap_is_object(v8make_small(7)));
	assert_false(heap_is_object(0x1003)); /* a weak reference */
	assert_true(heap_is_object(0x1001));
}

static void test_types(void **state)
{
	uint64_t function = v8make_object(&v8made, V8MAKE_TYPE_FUNCTION, 16), last = v8make_object(&v8made, V8MAKE_TYPE_FUNCTION + 16, 16);
	uint64_t other = v8make_object(&v8made, V8MAKE_TYPE_FUNCTION + 17, 16), string = v8make_string(&v8made, "x");

	v8make_finish(&v8made);
	assert_true(heap_is_function(&v8made.heap, function) && heap_is_function(&v8made.heap, last));
	assert_false(heap_is_function(&v8made.heap, other) || heap_is_function(&v8made.heap, string));
	assert_true(heap_is_string(&v8made.heap, string));
	assert_false(heap_is_string(&v8made.heap, function) || heap_is_string(&v8made.heap, 0) || heap_is_string(&v8made.heap, UINT64_MAX));
	assert_false(heap_is(&v8made.heap, function, V8_TYPE_TRUSTED_BYTES)); /* which this version does not have */
}

/* An object that was moved has the new place instead of its map. */
static void test_moved(void **state)
{
	uint64_t string = v8make_string(&v8made, "gone");

	v8make_put(&v8made, string, 0, string - 1 + 64);
	v8make_finish(&v8made);
	expect_none(string);
}

static void test_sequential(void **state)
{
	static const uint16_t wide[] = {'a', 0xe9, 0x2603, 0xd83d, 0xde00, 'z'};
	uint64_t empty = v8make_string(&v8made, ""), narrow = v8make_string(&v8made, "caf\xe9"), other;

	other = v8make_wide_string(&v8made, wide, 6);
	v8make_finish(&v8made);
	expect(empty, "");
	expect(narrow, "caf\xc3\xa9");
	expect(other, "a\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80z");
}

/* Halves of characters, and what would end the text. */
static void test_odd_characters(void **state)
{
	static const uint16_t lone[] = {0xdc00, 'a', 0xd800, 'b', 0, 0xd800};
	uint64_t string = v8make_wide_string(&v8made, lone, 6);

	v8make_finish(&v8made);
	expect(string, "\xef\xbf\xbd" "a" "\xef\xbf\xbd" "b" "\xef\xbf\xbd" "\xef\xbf\xbd");
}

static void test_composed(void **state)
{
	uint64_t hello = v8make_string(&v8made, "hello "), world = v8make_string(&v8made, "world");
	uint64_t cons = v8make_pair(&v8made, V8MAKE_TYPE_CONS_ONE, 11, hello, world);
	uint64_t nested = v8make_pair(&v8made, V8MAKE_TYPE_CONS_ONE, 22, cons, cons);
	uint64_t sliced = v8make_pair(&v8made, V8MAKE_TYPE_SLICED_ONE, 3, world, v8make_small(1));
	uint64_t thin = v8make_pair(&v8made, V8MAKE_TYPE_THIN_ONE, 3, sliced, 0);
	uint64_t flat = v8make_pair(&v8made, V8MAKE_TYPE_CONS_ONE, 5, world, v8make_string(&v8made, ""));
	struct heap_text text;

	v8make_finish(&v8made);
	expect(cons, "hello world");
	expect(nested, "hello worldhello world");
	expect(sliced, "orl");
	expect(thin, "orl");
	expect(flat, "world");
	assert_false(heap_flat_text(&v8made.heap, cons, &text));
	assert_true(heap_flat_text(&v8made.heap, thin, &text));
	assert_int_equal(text.address, world - 1 + 16 + 1);
	assert_int_equal(text.len, 3);
}

static void test_external(void **state)
{
	uint64_t characters = v8make_room(&v8made, 8);
	uint64_t external = v8make_pair(&v8made, V8MAKE_TYPE_EXTERNAL_ONE, 4, 0x5555, characters - 1);
	uint64_t uncached = v8make_pair(&v8made, V8MAKE_TYPE_UNCACHED_ONE, 4, 0x5555, characters - 1);

	memcpy(v8made.bytes + (characters - 1 - V8MAKE_BASE), "text", 4);
	v8make_finish(&v8made);
	expect(external, "text");
	expect_none(uncached);
}

/* Longer names are cut, where a character ends. */
static void test_cut(void **state)
{
	char many[2 * HEAP_TEXT + 1], found[HEAP_TEXT + 1];
	uint16_t wide[HEAP_TEXT];
	uint64_t narrow, other;

	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	for (size_t i = 0; i < HEAP_TEXT; i++)
		wide[i] = 0x2603;
	narrow = v8make_string(&v8made, many);
	other = v8make_wide_string(&v8made, wide, HEAP_TEXT);
	v8make_finish(&v8made);
	assert_true(heap_string(&v8made.heap, narrow, found));
	assert_int_equal(strlen(found), HEAP_TEXT);
	assert_true(heap_string(&v8made.heap, other, found));
	assert_int_equal(strlen(found), HEAP_TEXT / 3 * 3);
}

static void test_rings(void **state)
{
	uint64_t world = v8make_string(&v8made, "world");
	uint64_t cons = v8make_pair(&v8made, V8MAKE_TYPE_CONS_ONE, 1000, 0, world), both = v8make_pair(&v8made, V8MAKE_TYPE_CONS_ONE, 9, 0, 0);
	uint64_t thin = v8make_pair(&v8made, V8MAKE_TYPE_THIN_ONE, 5, 0, 0), sliced = v8make_pair(&v8made, V8MAKE_TYPE_SLICED_ONE, 5, 0, 0);

	v8make_put(&v8made, cons, 16, cons);
	v8make_put(&v8made, both, 16, both);
	v8make_put(&v8made, both, 24, both);
	v8make_put(&v8made, thin, 16, thin);
	v8make_put(&v8made, sliced, 16, sliced);
	v8make_finish(&v8made);
	expect_none(cons);
	expect_none(both);
	expect_none(thin);
	expect_none(sliced);
}

static void test_lengths(void **state)
{
	uint64_t world = v8make_string(&v8made, "world");
	uint64_t negative = v8make_string_of(&v8made, V8MAKE_TYPE_SEQ_ONE, -1, 8);
	uint64_t huge = v8make_string_of(&v8made, V8MAKE_TYPE_SEQ_TWO, INT32_MAX, 8);
	uint64_t beyond = v8make_pair(&v8made, V8MAKE_TYPE_SLICED_ONE, 3, world, v8make_small(3));
	uint64_t before = v8make_pair(&v8made, V8MAKE_TYPE_SLICED_ONE, 3, world, v8make_small(-1));
	uint64_t far = v8make_pair(&v8made, V8MAKE_TYPE_SLICED_ONE, 3, world, v8make_small(INT32_MAX));
	uint64_t wrong = v8make_pair(&v8made, V8MAKE_TYPE_THIN_ONE, 600, world, 0);
	uint64_t end = v8make_pair(&v8made, V8MAKE_TYPE_EXTERNAL_ONE, 600, 0, UINT64_MAX - 8);
	char found[HEAP_TEXT + 1];
	struct heap_text text;

	v8make_finish(&v8made);
	expect_none(negative);
	assert_true(heap_string(&v8made.heap, huge, found)); /* what there is of it */
	expect_none(beyond);
	expect_none(before);
	expect_none(far);
	assert_false(heap_flat_text(&v8made.heap, wrong, &text));
	expect_none(end);
}

/* What is not there yet is wanted; what cannot be read is not wanted again. */
static void test_wanted(void **state)
{
	struct ask wants = {0};

	expect_none(V8MAKE_BASE + 1);
	assert_true(v8made.pages.lacks);
	assert_true(pages_want(&v8made.pages, &wants));
	assert_int_equal(wants.len, 1);
	assert_int_equal(wants.data[0].address, V8MAKE_BASE);
	assert_true(pages_take(&v8made.pages, &wants));
	v8made.pages.lacks = false;
	expect_none(V8MAKE_BASE + 1);
	assert_false(v8made.pages.lacks);
	ask_deinit(&wants);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_values),	TEST(test_types),    TEST(test_moved),	 TEST(test_sequential), TEST(test_odd_characters),
		TEST(test_composed),	TEST(test_external), TEST(test_cut),	 TEST(test_rings),	TEST(test_lengths),
		TEST(test_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
