/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/source_perf_map.h"

struct fixture {
	int fd; /* of the file; the source has another */
	struct source source;
	struct calls calls;
};

static void start_with(struct fixture *f, const char *text, size_t len)
{
	struct perf_map_source *source;
	struct err err = {0};

	*f = (struct fixture){.fd = memfd_create("map", 0)};
	assert_int_equal(write(f->fd, text, len), (ssize_t)len);
	assert_int_equal(perf_map_source_create(dup(f->fd), &err, &source), 0);
	assert_int_equal(err.code, 0);
	f->source = (struct source){.ops = &perf_map_source_ops, .data = source};
}

static void start(struct fixture *f, const char *text)
{
	start_with(f, text, strlen(text));
}

static void finish(struct fixture *f)
{
	source_deinit(&f->source);
	vec_deinit(&f->calls);
	close(f->fd);
}

/* The name at the address, or NULL. */
static const char *name_at(struct fixture *f, uint64_t address)
{
	if (!source_find(&f->source, address, &f->calls))
		return NULL;
	assert_int_equal(f->calls.len, 1);
	assert_int_equal(f->calls.data[0].source, SYMBOL_PERF_MAP);
	assert_true(f->calls.data[0].has_start);
	assert_true(f->calls.data[0].start <= address);
	assert_int_equal(f->calls.data[0].linkage_len, strlen(f->calls.data[0].linkage));
	return f->calls.data[0].linkage;
}

static void test_names(void **state)
{
	struct fixture f;

	start(&f, "3000 10 third\n1000 20 first\n0x2000 0xA  with two  spaces\nFFFFffff00000000 10 high\n");
	assert_null(name_at(&f, 0xfff));
	assert_string_equal(name_at(&f, 0x1000), "first");
	assert_string_equal(name_at(&f, 0x101f), "first");
	assert_int_equal(f.calls.data[0].start, 0x1000);
	assert_null(name_at(&f, 0x1020));
	assert_string_equal(name_at(&f, 0x2009), "with two  spaces");
	assert_null(name_at(&f, 0x200a));
	assert_string_equal(name_at(&f, 0x3000), "third");
	assert_string_equal(name_at(&f, 0xffffffff0000000f), "high");
	assert_null(name_at(&f, UINT64_MAX));
	finish(&f);
}

static void test_later_lines_count(void **state)
{
	struct fixture f;

	start(&f, "1000 100 old\n"
		  "1040 20 new\n"
		  "2000 100 small and old\n"
		  "1f00 1000 large and new\n"
		  "3000 10 same place\n"
		  "3000 10 same place again\n");
	assert_string_equal(name_at(&f, 0x1000), "old");
	assert_string_equal(name_at(&f, 0x103f), "old");
	assert_string_equal(name_at(&f, 0x1040), "new");
	assert_int_equal(f.calls.data[0].start, 0x1040);
	assert_string_equal(name_at(&f, 0x105f), "new");
	assert_string_equal(name_at(&f, 0x1060), "old");
	assert_int_equal(f.calls.data[0].start, 0x1000);
	assert_string_equal(name_at(&f, 0x2080), "large and new");
	assert_string_equal(name_at(&f, 0x3000), "same place again");
	finish(&f);
}

static void test_damaged_lines(void **state)
{
	struct fixture f;

	start(&f, "\n"
		  "text\n"
		  "1000\n"
		  "1000 \n"
		  "1000 10\n"
		  "1000 10 \n"
		  " 1000 10 blank before\n"
		  "1000 0 of no size\n"
		  "10001000100010001 10 too long a number\n"
		  "fffffffffffffff0 20 beyond the end\n"
		  "1000 g no number\n"
		  "-1000 10 negative\n"
		  "5000 10 good\n"
		  "1000 10 just being writt");
	assert_null(name_at(&f, 0x1000));
	assert_null(name_at(&f, 0x0001000100010001));
	assert_null(name_at(&f, 0xfffffffffffffff8));
	assert_string_equal(name_at(&f, 0x5000), "good");
	finish(&f);
}

static void test_empty(void **state)
{
	struct fixture f;

	start(&f, "");
	assert_null(name_at(&f, 0));
	assert_null(name_at(&f, 0x1000));
	finish(&f);
}

/* Longer than what is read at once: lost, and what follows is not. */
static void test_endless_line(void **state)
{
	size_t len = 3 << 20;
	char *text = malloc(len + 64);
	struct fixture f;

	memset(text, 'x', len);
	memcpy(text, "1000 10 ", 8);
	strcpy(text + len, "\n2000 10 next\n");
	start_with(&f, text, strlen(text));
	assert_null(name_at(&f, 0x1000));
	assert_string_equal(name_at(&f, 0x2000), "next");
	finish(&f);
	free(text);
}

static void test_long_name_is_cut(void **state)
{
	char text[20000];
	struct fixture f;

	memset(text, 'x', sizeof(text));
	memcpy(text, "1000 10 ", 8);
	strcpy(text + 10000, "\n2000 10 next\n");
	start(&f, text);
	assert_in_range(strlen(name_at(&f, 0x1000)), 1000, 9000);
	assert_string_equal(name_at(&f, 0x2000), "next");
	finish(&f);
}

/* Lines lie across the borders of what is read at once. */
static void test_many_lines(void **state)
{
	enum { LINES = 100000 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct fixture f;

	for (unsigned i = 0; i < LINES; i++)
		fprintf(out, "%x 10 function number %u\n", 0x10000 + (i * 7919 % LINES) * 16, i * 7919 % LINES);
	fclose(out);
	start_with(&f, text, len);
	for (unsigned i = 0; i < LINES; i += 7) {
		char want[64];

		snprintf(want, sizeof(want), "function number %u", i);
		assert_string_equal(name_at(&f, 0x10000 + i * 16 + i % 16), want);
	}
	finish(&f);
	free(text);
}

/* Names are read when they are asked for: by then the file may have been cut short or written anew. */
static void test_file_changes(void **state)
{
	struct fixture f;

	start(&f, "1000 10 first\n2000 10 second\n");
	assert_int_equal(pwrite(f.fd, "9000 10 other\n", 14, 0), 14);
	assert_null(name_at(&f, 0x1000));
	assert_null(name_at(&f, 0x9000));
	assert_string_equal(name_at(&f, 0x2000), "second");
	assert_int_equal(ftruncate(f.fd, 3), 0);
	assert_null(name_at(&f, 0x2000));
	finish(&f);
}

static void test_unreadable(void **state)
{
	struct perf_map_source *source;
	struct err err = {0};

	assert_true(perf_map_source_create(open("/", O_RDONLY | O_DIRECTORY), &err, &source) < 0);
	assert_int_not_equal(err.code, 0);
	perf_map_source_ops.destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),         cmocka_unit_test(test_later_lines_count),
		cmocka_unit_test(test_damaged_lines), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_endless_line),  cmocka_unit_test(test_long_name_is_cut),
		cmocka_unit_test(test_many_lines),    cmocka_unit_test(test_file_changes),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests_name("source_perf_map", tests, NULL, NULL);
}
