/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "runtime/python/quotes.h"

static void expect(uint32_t c, char quote, bool narrow, const char *text)
{
	char out[QUOTED_CHARACTER];
	size_t len = quotes_put(out, c, quote, narrow);

	assert_int_equal(len, strlen(text));
	assert_memory_equal(out, text, len);
}

static void test_characters(void **state)
{
	expect('a', '\'', false, "a");
	expect(0, '\'', false, "\\x00");
	expect('\n', '\'', false, "\\n");
	expect('\\', '\'', true, "\\\\");
	expect('\'', '\'', false, "\\'");
	expect('\'', '"', false, "'");
	expect(0xe9, '\'', false, "é");
	expect(0xe9, '\'', true, "\\xe9");
	expect(0x85, '\'', false, "\\x85");
	expect(0x202e, '\'', false, "\\u202e");
	expect(0xdc80, '\'', false, "\\udc80");
	expect(0x1f600, '\'', false, "😀");
	expect(0xe0001, '\'', false, "\\U000e0001");
	expect(UINT32_MAX, '\'', false, "\\Uffffffff"); /* no character: memory may say anything */
}

static void test_choice(void **state)
{
	assert_int_equal(quotes_choose((const uint32_t[]){'a'}, 1), '\'');
	assert_int_equal(quotes_choose((const uint32_t[]){'a', '\''}, 2), '"');
	assert_int_equal(quotes_choose((const uint32_t[]){'"', '\''}, 2), '\'');
	assert_int_equal(quotes_choose(NULL, 0), '\'');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
