/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/wrap.h"

static void check(const char *text, size_t width, const char *want)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	wrap_lines(text, width, out);
	fclose(out);
	assert_string_equal(got, want);
	free(got);
}

static void test_what_fits(void **state)
{
	check("", 10, "");
	check("\n\n", 10, "\n\n");
	check("0123456789\n  a  b\nno newline", 10, "0123456789\n  a  b\nno newline");
	check("µµµµµ µµµµ\n", 10, "µµµµµ µµµµ\n");
}

static void test_what_does_not(void **state)
{
	check("one two three four five\n", 12, "one two\n    three\n    four\n    five\n");
	check("ab cdefghijklmnopqr st\n", 10, "ab\n    cdefghijklmnopqr\n    st\n");
	check("abcdefghijklmnopqr\n", 10, "abcdefghijklmnopqr\n");
	check("one two three   ", 8, "one two\n    three\n    "); /* nothing is lost */
}

static void test_units(void **state)
{
	check("for 12 ms, 8 %, and 3 s\n", 8, "for\n    12 ms,\n    8 %,\n    and\n    3 s\n");
	check("one stack\n", 8, "one\n    stack\n");
}

/* What has two spaces around it belongs together. */
static void test_parts(void **state)
{
	check("S sleeping  off-CPU 3.5 s  CPU time 42.7 ms\n", 40, "S sleeping  off-CPU 3.5 s\n    CPU time 42.7 ms\n");
	check("  one,  two three\n", 15, "  one,\n      two three\n");
	check("  one,  two three\n", 14, "  one,  two\n      three\n"); /* it does not fit a line */
	check("a  b c d e f g h i j\n", 10, "a  b c d e\n    f g h\n    i j\n");
}

static void test_colours(void **state)
{
	check("\033[1mone\033[0m \033[2mtwo\033[0m\n", 7, "\033[1mone\033[0m \033[2mtwo\033[0m\n");
	check("\033[1mone\033[0m \033[2mtwo\033[0m\n", 6, "\033[1mone\033[0m\n    \033[2mtwo\033[0m\n");
}

/* There is no room for words behind an indent that is wider than all. */
static void test_deep_indent(void **state)
{
	check("        one two\n", 10, "        one two\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits), cmocka_unit_test(test_what_does_not), cmocka_unit_test(test_units),
		cmocka_unit_test(test_colours),   cmocka_unit_test(test_deep_indent),   cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
