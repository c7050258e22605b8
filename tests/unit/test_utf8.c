/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "base/utf8.h"

static void check(const char *s, size_t want_len, uint32_t want_code)
{
	uint32_t code = 0;

	assert_int_equal(utf8_next(s, &code), want_len);
	assert_int_equal(code, want_code);
}

static void test_valid(void **state)
{
	check("a", 1, 'a');
	check("\x7f", 1, 0x7f);
	check("\xc2\xb5s", 2, 0xb5);
	check("\xe2\x80\xa6", 3, 0x2026);
	check("\xf0\x9f\x90\x9b", 4, 0x1f41b);
	check("\xf4\x8f\xbf\xbf", 4, 0x10ffff);
}

static void test_invalid(void **state)
{
	check("\x80", 1, UTF8_REPLACEMENT);		/* continuation first */
	check("\xff", 1, UTF8_REPLACEMENT);
	check("\xc2", 1, UTF8_REPLACEMENT);		/* cut off by the NUL */
	check("\xe2\x80", 1, UTF8_REPLACEMENT);
	check("\xe2(\xa1", 1, UTF8_REPLACEMENT);
	check("\xc0\xaf", 1, UTF8_REPLACEMENT);		/* longer than needed */
	check("\xe0\x80\x80", 1, UTF8_REPLACEMENT);
	check("\xed\xa0\x80", 1, UTF8_REPLACEMENT);	/* surrogate */
	check("\xf4\x90\x80\x80", 1, UTF8_REPLACEMENT); /* beyond U+10FFFF */
}

/* What is put is what is read. */
static void test_put(void **state)
{
	static const uint32_t codes[] = {'a', 0x7f, 0x80, 0xb5, 0x7ff, 0x800, 0x2026, 0xffff, 0x10000, 0x1f41b, 0x10ffff};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		char bytes[UTF8_MAX + 1] = "";

		check(bytes, utf8_put(bytes, codes[i]), codes[i]);
		assert_int_equal(strlen(bytes), utf8_put(bytes, codes[i]));
	}
}

static void test_control(void **state)
{
	assert_true(utf8_is_control('\n'));
	assert_true(utf8_is_control(0x1b));
	assert_true(utf8_is_control(0x7f));
	assert_true(utf8_is_control(0x9b));
	assert_true(utf8_is_control(0x202e));
	assert_true(utf8_is_control(0x2066));
	assert_false(utf8_is_control(' '));
	assert_false(utf8_is_control(0xb5));
	assert_false(utf8_is_control(0x1f41b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_control),
		cmocka_unit_test(test_put),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
