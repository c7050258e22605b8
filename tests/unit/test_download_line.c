/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/download_line.h"

/* Lets the time for the next one come, or not for long. */
static void set_next(struct download_line *line, bool now)
{
	line->next = now ? 1 : UINT64_MAX;
}

static char *written(struct download_line *line, void (*steps)(struct download_line *line))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	*line = (struct download_line){.out = out};
	steps(line);
	fclose(out);
	return text;
}

static void expect(void (*steps)(struct download_line *line), const char *want)
{
	struct download_line line;
	char *got = written(&line, steps);

	assert_string_equal(got, want);
	free(got);
}

static void quick(struct download_line *line)
{
	download_line_show(line, "/usr/lib/libx.so", 5000, 0);
	download_line_show(line, NULL, 0, 0);
}

/* What is over at once is not worth a line. */
static void test_quick(void **state)
{
	expect(quick, "");
}

static void slow(struct download_line *line)
{
	download_line_show(line, "/usr/lib/libx.so", 0, 0);
	set_next(line, true);
	download_line_show(line, "/usr/lib/libx.so", 0, 0);
	set_next(line, false);
	download_line_show(line, "/usr/lib/libx.so", 1, 0);
	set_next(line, true);
	download_line_show(line, "/usr/lib/libx.so", 2500000, 0);
	set_next(line, true);
	download_line_show(line, "/usr/lib/libx.so", 2500000, 10000000);
	download_line_show(line, NULL, 0, 0);
}

static void test_slow(void **state)
{
	expect(slow, "\r\033[Kdownloading debug info of libx.so (Ctrl-C: go on without)"
		     "\r\033[Kdownloading debug info of libx.so: 2.5 MB (Ctrl-C: go on without)"
		     "\r\033[Kdownloading debug info of libx.so: 2.5 of 10.0 MB (Ctrl-C: go on without)"
		     "\r\033[K");
}

static void hostile(struct download_line *line)
{
	static const char label[] = "/x/\033]0;owned\a\n0123456789012345678901234567890123456789";

	download_line_show(line, label, 0, 0);
	set_next(line, true);
	download_line_show(line, label, 0, 0);
}

/* The target chooses the names of its files. */
static void test_hostile(void **state)
{
	struct download_line line;
	char *got = written(&line, hostile);

	assert_null(strchr(got + 4, '\033'));
	assert_null(strchr(got, '\a'));
	assert_null(strchr(got, '\n'));
	assert_true(strlen(got) < 120);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quick),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
