/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "base/cursor.h"

static void test_integers(void **state)
{
	static const uint8_t data[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88};
	struct cursor c = cursor_init(data, sizeof(data));

	assert_int_equal(cursor_u8(&c), 0x01);
	assert_int_equal(cursor_u16(&c), 0x0302);
	assert_int_equal(cursor_u32(&c), 0x07060504);
	assert_int_equal(cursor_left(&c), 1);
	assert_int_equal(cursor_sint(&c, 1), -0x78);
	assert_false(c.bad);
	assert_true(cursor_seek(&c, 0));
	assert_true(cursor_u64(&c) == UINT64_C(0x8807060504030201));
	assert_true(cursor_seek(&c, 4));
	assert_int_equal(cursor_sint(&c, 4), (int32_t)0x88070605);
}

static void test_big_endian(void **state)
{
	static const uint8_t data[] = {0x01, 0x02, 0xff, 0xfe};
	struct cursor c = cursor_init(data, sizeof(data));
	struct cursor part;

	c.big_endian = true;
	assert_int_equal(cursor_u16(&c), 0x0102);
	part = cursor_take(&c, 2);
	assert_int_equal(cursor_sint(&part, 2), -2);
}

static void test_reading_past_the_end_sticks(void **state)
{
	static const uint8_t data[] = {1, 2, 3};
	struct cursor c = cursor_init(data, sizeof(data));
	uint8_t out[4] = {9, 9, 9, 9};

	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(cursor_u8(&c), 0);
	assert_false(cursor_seek(&c, 0));
	assert_false(cursor_bytes(&c, out, sizeof(out)));
	assert_int_equal(out[0], 0);
	assert_null(cursor_cstr(&c));
}

static void test_bad_lengths(void **state)
{
	static const uint8_t data[] = {1, 2, 3};
	struct cursor c = cursor_init(data, sizeof(data));
	struct cursor part = cursor_take(&c, UINT64_MAX);

	assert_true(part.bad);
	assert_true(c.bad);
	assert_int_equal(cursor_left(&part), 0);
	c = cursor_init(data, sizeof(data));
	assert_false(cursor_skip(&c, UINT64_MAX));
	c = cursor_init(data, sizeof(data));
	assert_false(cursor_seek(&c, UINT64_MAX));
	c = cursor_init(data, sizeof(data));
	assert_int_equal(cursor_uint(&c, 9), 0);
	assert_true(c.bad);
	c = cursor_init(NULL, 0);
	assert_int_equal(cursor_u8(&c), 0);
	assert_true(c.bad);
}

static void test_take_is_bounded(void **state)
{
	static const uint8_t data[] = {1, 2, 3, 4};
	struct cursor c = cursor_init(data, sizeof(data));
	struct cursor part = cursor_take(&c, 2);

	assert_int_equal(cursor_u8(&part), 1);
	assert_int_equal(cursor_u8(&part), 2);
	assert_int_equal(cursor_u8(&part), 0);
	assert_true(part.bad);
	assert_false(c.bad);
	assert_int_equal(cursor_u8(&c), 3);
	assert_int_equal(cursor_offset(&c), 3);
}

static void test_leb(void **state)
{
	static const uint8_t data[] = {
		0xe5, 0x8e, 0x26,					    /* 624485 */
		0x9b, 0xf1, 0x59,					    /* -624485 */
		0x7f,							    /* -1 */
		0x80, 0x80, 0x00,					    /* 0, padded */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* 2^64 - 1 */
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, /* -2^63 */
		0x80,							    /* cut off */
	};
	struct cursor c = cursor_init(data, sizeof(data));

	assert_int_equal(cursor_uleb(&c), 624485);
	assert_int_equal(cursor_sleb(&c), -624485);
	assert_int_equal(cursor_sleb(&c), -1);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(cursor_uleb(&c) == UINT64_MAX);
	assert_true(cursor_sleb(&c) == INT64_MIN);
	assert_false(c.bad);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(c.bad);
}

static void test_padded_leb(void **state)
{
	uint8_t data[64];
	struct cursor c;

	memset(data, 0x80, sizeof(data));
	data[31] = 0;
	c = cursor_init(data, sizeof(data));
	assert_int_equal(cursor_uleb(&c), 0);
	assert_int_equal(cursor_offset(&c), 32);
	assert_false(c.bad);
	data[31] = 0x80;
	data[32] = 0;
	c = cursor_init(data, sizeof(data));
	assert_int_equal(cursor_sleb(&c), 0);
	assert_true(c.bad);
}

static void test_strings(void **state)
{
	static const char data[] = {'a', 'b', '\0', '\0', 'c'};
	struct cursor c = cursor_init(data, sizeof(data));

	assert_string_equal(cursor_cstr(&c), "ab");
	assert_string_equal(cursor_cstr(&c), "");
	assert_null(cursor_cstr(&c));
	assert_true(c.bad);
}

static void test_copied_strings(void **state)
{
	static const char data[] = {'a', 'b', '\0', '\0', 'c', 'd', '\0', 'e'};
	struct cursor c = cursor_init(data, sizeof(data));
	char text[3];

	assert_true(cursor_string(&c, text, sizeof(text)));
	assert_string_equal(text, "ab");
	assert_true(cursor_string(&c, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_int_equal(cursor_offset(&c), 4);
	assert_true(cursor_string(&c, text, sizeof(text))); /* just fits */
	assert_string_equal(text, "cd");
	assert_false(cursor_string(&c, text, sizeof(text))); /* no end */
	assert_string_equal(text, "");
	assert_true(c.bad);
	c = cursor_init(data, sizeof(data));
	assert_false(cursor_string(&c, text, 2)); /* too long */
	assert_string_equal(text, "");
	assert_false(cursor_string(&c, text, 0));
	c = cursor_init(NULL, 0);
	assert_false(cursor_string(&c, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_big_endian),
		cmocka_unit_test(test_reading_past_the_end_sticks),
		cmocka_unit_test(test_bad_lengths),
		cmocka_unit_test(test_take_is_bounded),
		cmocka_unit_test(test_leb),
		cmocka_unit_test(test_padded_leb),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_copied_strings),
	};

	return cmocka_run_group_tests_name("cursor", tests, NULL, NULL);
}
