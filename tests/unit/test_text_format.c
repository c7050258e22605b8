/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/text_format.h"

static void check_duration(uint64_t ns, const char *want)
{
	char buf[DURATION_LEN];

	assert_string_equal(format_duration(ns, buf), want);
}

static void test_durations(void **state)
{
	const uint64_t s = 1000000000;

	check_duration(0, "0 µs");
	check_duration(23417, "23 µs");
	check_duration(999499, "999 µs");
	check_duration(1900000, "1.9 ms");
	check_duration(34000000, "34.0 ms");
	check_duration(345600000, "346 ms");
	check_duration(12345678901, "12.3 s");
	check_duration(59 * s, "59.0 s");
	check_duration(999500, "1.0 ms"); /* and not 1000 µs */
	check_duration(999499999, "999 ms");
	check_duration(999500000, "1.0 s");
	check_duration(60 * s - s / 20 - 1, "59.9 s");
	check_duration(60 * s - s / 20, "1 min 00 s");
	check_duration(192 * s, "3 min 12 s");
	check_duration(7505 * s, "2 h 05 min");
	check_duration(100 * 3600 * s, "4 d 04 h");
	check_duration(UINT64_MAX, "213503 d 23 h");
}

static void test_paths(void **state)
{
	assert_string_equal(path_tail("/usr/lib/libc.so.6", 1), "libc.so.6");
	assert_string_equal(path_tail("/usr/lib/libc.so.6", 2), "lib/libc.so.6");
	assert_string_equal(path_tail("lib/libc.so.6", 2), "lib/libc.so.6");
	assert_string_equal(path_tail("[vdso]", 1), "[vdso]");
	assert_string_equal(path_tail("", 2), "");
	assert_string_equal(path_tail("/", 1), "");
}

static char *with_text(void (*put)(const struct text *t, const void *arg), const void *arg, bool color)
{
	char *out = NULL;
	size_t len;
	struct text t = {.out = open_memstream(&out, &len), .color = color};

	assert_non_null(t.out);
	put(&t, arg);
	fclose(t.out);
	return out;
}

static void put_untrusted(const struct text *t, const void *arg)
{
	text_untrusted(t, arg);
}

static void check_untrusted(const char *s, const char *want)
{
	char *out = with_text(put_untrusted, s, true);

	assert_string_equal(out, want);
	free(out);
}

static void test_untrusted(void **state)
{
	check_untrusted("plain name", "plain name");
	check_untrusted("\033[31mred\n", "\\x1b[31mred\\x0a");
	check_untrusted("\xc2\x9bm", "\\x9bm");
	check_untrusted("\xe2\x80\xae", "\\u202e");
	check_untrusted("\xff\xc2\xb5", "\xef\xbf\xbd\xc2\xb5");
}

static void put_styles(const struct text *t, const void *arg)
{
	text_style(t, STYLE_STRONG);
	fputs("x", t->out);
	text_style(t, STYLE_PLAIN);
}

static void test_styles(void **state)
{
	char *plain = with_text(put_styles, NULL, false), *color = with_text(put_styles, NULL, true);

	assert_string_equal(plain, "x");
	assert_string_equal(color, "\033[1mx\033[0m");
	free(plain);
	free(color);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_untrusted),
		cmocka_unit_test(test_styles),
	};

	return cmocka_run_group_tests_name("text_format", tests, NULL, NULL);
}
