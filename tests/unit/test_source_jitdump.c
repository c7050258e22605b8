/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/source_jitdump.h"

enum { SHIFT = 64 }; /* what V8 adds to the addresses of lines */

/* A file in the making. */
struct dump {
	uint8_t data[16384];
	size_t len;
	bool big_endian;
	size_t record; /* offset of the one that is being put together */
};

struct fixture {
	struct dump dump;
	struct source source;
	struct calls calls;
	struct err err;
};

static void put(struct dump *d, uint64_t value, unsigned size)
{
	assert_true(d->len + size <= sizeof(d->data));
	for (unsigned i = 0; i < size; i++)
		d->data[d->len++] = (uint8_t)(value >> 8 * (d->big_endian ? size - 1 - i : i));
}

static void put_text(struct dump *d, const char *text)
{
	do
		put(d, (uint8_t)*text, 1);
	while (*text++);
}

static void begin(struct dump *d, uint32_t id)
{
	d->record = d->len;
	put(d, id, 4);
	put(d, 0, 4);
	put(d, 0, 8);
}

static void end(struct dump *d)
{
	size_t len = d->len;

	d->len = d->record + 4;
	put(d, len - d->record, 4);
	d->len = len;
}

static void put_load(struct dump *d, uint64_t address, uint64_t size, uint64_t index, const char *name)
{
	begin(d, 0);
	put(d, 1, 4);
	put(d, 1, 4);
	put(d, address, 8);
	put(d, address, 8);
	put(d, size, 8);
	put(d, index, 8);
	put_text(d, name);
	put(d, 0xcccc, 2); /* code; of odd length, records need not be aligned */
	put(d, 0xcc, 1);
	end(d);
}

static void put_move(struct dump *d, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	begin(d, 1);
	put(d, 1, 4);
	put(d, 1, 4);
	put(d, to, 8);
	put(d, from, 8);
	put(d, to, 8);
	put(d, size, 8);
	put(d, index, 8);
	end(d);
}

struct line {
	uint64_t offset;
	uint32_t line;
	const char *file;
};

/* Up to a line of number 0; `count` is what the record says. */
static void put_lines(struct dump *d, uint64_t code, uint64_t count, const struct line *lines)
{
	begin(d, 2);
	put(d, code, 8);
	put(d, count, 8);
	for (; lines->line; lines++) {
		put(d, code + lines->offset, 8);
		put(d, lines->line, 4);
		put(d, 7, 4);
		put_text(d, lines->file);
	}
	end(d);
}

static void init(struct fixture *f, bool big_endian)
{
	*f = (struct fixture){.dump = {.big_endian = big_endian}};
	put(&f->dump, 0x4a695444, 4);
	put(&f->dump, 1, 4);
	put(&f->dump, 48, 4); /* a larger header than is known */
	put(&f->dump, 62, 4);
	put(&f->dump, 0, 4);
	put(&f->dump, 1, 4);
	put(&f->dump, 0, 8);
	put(&f->dump, 0, 8);
	put(&f->dump, UINT64_MAX, 8);
}

static int try_open(struct fixture *f)
{
	struct jitdump_source *source = NULL;
	int fd = memfd_create("dump", 0);
	int ret;

	assert_int_equal(write(fd, f->dump.data, f->dump.len), (ssize_t)f->dump.len);
	ret = jitdump_source_create(fd, &f->err, &source);
	f->source = (struct source){.ops = &jitdump_source_ops, .data = source};
	return ret;
}

static void start(struct fixture *f)
{
	assert_int_equal(try_open(f), 0);
	assert_int_equal(f->err.code, 0);
}

static void finish(struct fixture *f)
{
	source_deinit(&f->source);
	vec_deinit(&f->calls);
}

static const struct call *call_at(struct fixture *f, uint64_t address)
{
	if (!source_find(&f->source, address, &f->calls))
		return NULL;
	assert_int_equal(f->calls.len, 1);
	assert_int_equal(f->calls.data[0].source, SYMBOL_JITDUMP);
	assert_true(f->calls.data[0].has_start && f->calls.data[0].start <= address);
	return &f->calls.data[0];
}

static const char *name_at(struct fixture *f, uint64_t address)
{
	const struct call *call = call_at(f, address);

	return call ? call->linkage : NULL;
}

static void expect_line(struct fixture *f, uint64_t address, const char *file, uint32_t line)
{
	const struct call *call = call_at(f, address);

	assert_non_null(call);
	if (!file) {
		assert_null(call->file);
		return;
	}
	assert_string_equal(call->file, file);
	assert_int_equal(call->line, line);
	assert_int_equal(call->column, 7);
}

static void test_loads(void **state)
{
	for (int big_endian = 0; big_endian <= 1; big_endian++) {
		struct fixture f;

		init(&f, big_endian);
		put_load(&f.dump, 0x1000, 0x100, 1, "first function");
		put_load(&f.dump, 0x2000, 0x10, 2, "second");
		put_load(&f.dump, 0x3000, 0, 3, "empty");
		put_load(&f.dump, 0x1080, 0x20, 4, "newer");
		start(&f);
		assert_null(name_at(&f, 0xfff));
		assert_string_equal(name_at(&f, 0x1000), "first function");
		assert_string_equal(name_at(&f, 0x1080), "newer");
		assert_int_equal(f.calls.data[0].start, 0x1080);
		assert_string_equal(name_at(&f, 0x10a0), "first function");
		assert_int_equal(f.calls.data[0].start, 0x1000);
		assert_null(name_at(&f, 0x1100));
		assert_string_equal(name_at(&f, 0x200f), "second");
		assert_null(name_at(&f, 0x3000));
		finish(&f);
	}
}

static void test_moves(void **state)
{
	static const struct line lines[] = {{0, 10, "a.js"}, {0x80, 20, "a.js"}, {0}};
	struct fixture f;

	init(&f, false);
	put_lines(&f.dump, 0x1000, 2, lines);
	put_load(&f.dump, 0x1000, 0x100, 7, "mover");
	put_move(&f.dump, 0x1000, 0x5000, 0x100, 7);
	put_load(&f.dump, 0x2000, 0x100, 8, "slider");
	put_move(&f.dump, 0x2000, 0x2080, 0x100, 8);
	put_move(&f.dump, 0x9000, 0x9100, 0x100, 99); /* of code that is not known */
	put_move(&f.dump, 0x5000, 0x6000, 0x100, 7);
	start(&f);
	assert_null(name_at(&f, 0x1000));
	assert_null(name_at(&f, 0x5000));
	assert_string_equal(name_at(&f, 0x6000), "mover");
	assert_int_equal(f.calls.data[0].start, 0x6000);
	expect_line(&f, 0x607f, "a.js", 10);
	expect_line(&f, 0x6080, "a.js", 20);
	assert_null(name_at(&f, 0x2000));
	assert_string_equal(name_at(&f, 0x2080), "slider");
	assert_string_equal(name_at(&f, 0x217f), "slider");
	assert_null(name_at(&f, 0x9100));
	finish(&f);
}

static void test_lines(void **state)
{
	static const struct line lines[] = {
		{0, 10, "a.js"}, {0x20, 30, "b.js"}, {0x10, 20, "\xff"}, {0x40, 40, "\xff"}, {0}};
	struct fixture f;

	init(&f, true);
	put_lines(&f.dump, 0x1000, 4, lines);
	put_load(&f.dump, 0x1000, 0x100, 1, "one");
	put_load(&f.dump, 0x2000, 0x100, 2, "two"); /* the lines are not for this one */
	put_lines(&f.dump, 0x7000, 4, lines);
	put_load(&f.dump, 0x3000, 0x100, 3, "three");
	start(&f);
	expect_line(&f, 0x1000, "a.js", 10);
	expect_line(&f, 0x100f, "a.js", 10);
	expect_line(&f, 0x1010, "b.js", 20);
	expect_line(&f, 0x1020, "b.js", 30);
	expect_line(&f, 0x10ff, "b.js", 40);
	expect_line(&f, 0x2000, NULL, 0);
	expect_line(&f, 0x3000, NULL, 0);
	finish(&f);
}

/* All lines of all functions start after where an ELF header would end: they were shifted by it. */
static void test_shifted_lines(void **state)
{
	static const struct line shifted[] = {{SHIFT, 10, "a.js"}, {SHIFT + 0x10, 20, "a.js"}, {0}};
	static const struct line straight[] = {{0, 1, "b.js"}, {0}};
	struct fixture f;

	init(&f, false);
	put_lines(&f.dump, 0x1000, 2, shifted);
	put_load(&f.dump, 0x1000, 0x100, 1, "JS:*optimised");
	put_lines(&f.dump, 0x2000, 2, shifted);
	put_load(&f.dump, 0x2000, 0x100, 2, "JS:^baseline"); /* offsets into its byte code: no use */
	start(&f);
	expect_line(&f, 0x1000, "a.js", 10);
	expect_line(&f, 0x1010, "a.js", 20);
	expect_line(&f, 0x2000, NULL, 0);
	finish(&f);

	put_lines(&f.dump, 0x3000, 1, straight);
	put_load(&f.dump, 0x3000, 0x100, 3, "straight");
	start(&f);
	expect_line(&f, 0x1000, NULL, 0);
	expect_line(&f, 0x1000 + SHIFT, "a.js", 10);
	expect_line(&f, 0x3000, "b.js", 1);
	finish(&f);
}

static void test_damaged_lines(void **state)
{
	static const struct {
		uint64_t count;
		struct line lines[3];
	} bad[] = {
		{3, {{0, 1, "a.js"}, {1, 2, "a.js"}}},              /* fewer than said */
		{1, {{0, 1, "a.js"}, {1, 2, "a.js"}}},              /* more */
		{UINT64_MAX, {{0, 1, "a.js"}}},                     /* absurd */
		{0, {{0}}},                                         /* none */
		{2, {{0, 1, "a.js"}, {UINT64_C(1) << 40, 2, "a"}}}, /* far away */
		{2, {{0, 1, "a.js"}, {-UINT64_C(8), 2, "a"}}},      /* before its code */
		{1, {{0, 1, "a\x01.js"}}},                          /* no text */
		{1, {{0, 1, "\xff"}}},                              /* the same as nothing */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fixture f;

		init(&f, false);
		put_lines(&f.dump, 0x1000, bad[i].count, bad[i].lines);
		put_load(&f.dump, 0x1000, 0x100, 1, "function");
		start(&f);
		assert_string_equal(name_at(&f, 0x1000), "function");
		expect_line(&f, 0x1000, NULL, 0);
		finish(&f);
	}
}

static void test_unknown_records_and_the_end(void **state)
{
	struct fixture f;

	init(&f, false);
	begin(&f.dump, 4); /* unwinding info */
	put(&f.dump, 0, 8);
	end(&f.dump);
	begin(&f.dump, 1000);
	end(&f.dump);
	begin(&f.dump, 0); /* too short for a load */
	put(&f.dump, 0, 8);
	end(&f.dump);
	begin(&f.dump, 2); /* too short for lines */
	end(&f.dump);
	put_load(&f.dump, 0x1000, 0x100, 1, "before");
	begin(&f.dump, 3); /* close */
	end(&f.dump);
	put_load(&f.dump, 0x2000, 0x100, 2, "after");
	start(&f);
	assert_string_equal(name_at(&f, 0x1000), "before");
	assert_null(name_at(&f, 0x2000));
	finish(&f);
}

/* Wherever it ends: it is a file that is being written. */
static void test_cut_short(void **state)
{
	static const struct line lines[] = {{0, 10, "a.js"}, {0}};
	struct fixture f;
	size_t whole, first;

	init(&f, false);
	put_load(&f.dump, 0x1000, 0x100, 1, "first");
	first = f.dump.len;
	put_lines(&f.dump, 0x2000, 1, lines);
	put_load(&f.dump, 0x2000, 0x100, 2, "second");
	whole = f.dump.len;
	for (f.dump.len = first; f.dump.len < whole; f.dump.len++) {
		const char *second;

		start(&f);
		assert_string_equal(name_at(&f, 0x1000), "first");
		second = name_at(&f, 0x2000);
		assert_true(!second || strcmp(second, "second") == 0);
		finish(&f);
	}
}

static void test_damaged(void **state)
{
	struct fixture f;

	init(&f, false);
	f.dump.data[0] = 'x';
	assert_true(try_open(&f) < 0);
	assert_non_null(strstr(f.err.msg, "not a jitdump"));

	init(&f, false);
	f.dump.len = 20;
	assert_true(try_open(&f) < 0);
	assert_int_not_equal(f.err.code, 0);

	init(&f, false);
	f.dump.data[8] = 3; /* the header's size */
	assert_true(try_open(&f) < 0);

	/* A record that ends before it starts: what came before it is used, and it is told. */
	init(&f, false);
	put_load(&f.dump, 0x1000, 0x100, 1, "first");
	begin(&f.dump, 0);
	put_load(&f.dump, 0x2000, 0x100, 1, "second");
	assert_int_equal(try_open(&f), 0);
	assert_int_not_equal(f.err.code, 0);
	assert_non_null(strstr(f.err.msg, "damaged at byte"));
	assert_string_equal(name_at(&f, 0x1000), "first");
	assert_null(name_at(&f, 0x2000));
	finish(&f);
}

/* Its name would go on in the record behind it. */
static void test_name_without_end(void **state)
{
	struct fixture f;

	init(&f, false);
	put_load(&f.dump, 0x1000, 0x100, 1, "endless");
	f.dump.len -= 4; /* the NUL and the code */
	end(&f.dump);
	put_load(&f.dump, 0x2000, 0x100, 2, "next");
	start(&f);
	assert_null(name_at(&f, 0x1000));
	assert_string_equal(name_at(&f, 0x2000), "next");
	finish(&f);
}

static void test_destroy_nothing(void **state)
{
	jitdump_source_ops.destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_shifted_lines),
		cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_unknown_records_and_the_end),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_name_without_end),
		cmocka_unit_test(test_destroy_nothing),
	};

	return cmocka_run_group_tests_name("source_jitdump", tests, NULL, NULL);
}
