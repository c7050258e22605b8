/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>

#include "gomake.h"
#include "symbol/source_go.h"

static struct gomake *make(struct gomake how)
{
	struct gomake *g = malloc(sizeof(*g));

	assert_non_null(g);
	*g = how;
	if (!g->quantum)
		g->quantum = 1;
	gomake(g);
	return g;
}

static int open_source(const struct gomake *g, struct image **image, struct go_source **source)
{
	*source = NULL;
	assert_int_equal(image_open_memory(g->data, sizeof(g->data), NULL, image), 0);
	return go_source_create(*image, NULL, source);
}

/* The calls at an offset of the code as text: "name file:line", innermost first; "" for none. */
static void expect(struct go_source *source, uint64_t offset, const char *want)
{
	struct calls calls = {0};
	char got[512] = "";

	if (go_source_find(source, GOMAKE_TEXT + offset, &calls)) {
		assert_true(calls.len > 0);
		for (size_t i = 0; i < calls.len; i++) {
			const struct call *call = &calls.data[i];

			assert_int_equal(call->source, call->name ? SYMBOL_GO : SYMBOL_UNKNOWN);
			assert_int_equal(call->has_start, i + 1 == calls.len);
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s %s:%u", i ? ", " : "",
				 call->name ? call->name : "?", call->file ? call->file : "?", call->line);
		}
		assert_int_equal(calls.data[calls.len - 1].start, GOMAKE_TEXT + offset / 0x100 * 0x100);
	}
	vec_deinit(&calls);
	assert_string_equal(got, want);
}

static void expect_all(struct go_source *source)
{
	expect(source, 0, "main.outer /src/a.go:11");
	expect(source, 0x1f, "main.outer /src/a.go:11");
	expect(source, 0x20, "main.mid /src/a.go:31, main.outer /src/a.go:11");
	expect(source, 0x7f, "main.inner /src/b.go:52, main.mid /src/a.go:31, main.outer /src/a.go:11");
	expect(source, 0x80, "main.outer /src/a.go:14");
	expect(source, 0xf0, ""); /* padding */
	expect(source, 0x100, "main.(*T[...]).leaf /src/a.go:70");
	expect(source, 0x17f, "main.(*T[...]).leaf /src/a.go:70");
	expect(source, 0x180, "");
	expect(source, UINT64_MAX - GOMAKE_TEXT, "");
	expect(source, -1, "");
}

static void check(struct gomake how)
{
	struct gomake *g = make(how);
	struct image *image;
	struct go_source *source;

	assert_int_equal(open_source(g, &image, &source), 0);
	expect_all(source);
	go_source_destroy(source);
	image_destroy(image);
	free(g);
}

static const unsigned releases[] = {9, 12, 13, 16, 18, 20, 26};
enum { RELEASES = sizeof(releases) / sizeof(releases[0]) };

/* Every layout in every word size and byte order, found by section and by search, linked at a fixed place and not. */
static void test_all_layouts(void **state)
{
	for (size_t i = 0; i < RELEASES; i++)
		for (unsigned bits = 0; bits < 16; bits++)
			check((struct gomake){
				.release = releases[i],
				.ptr_size = bits & 1 ? 8 : 4,
				.big_endian = bits & 2,
				.quantum = bits & 2 ? 4 : 1,
				.sections = bits & 4,
				.pie = bits & 8,
			});
}

/* The address of go:func.* has moved within runtime.moduledata and may again. */
static void test_place_of_trees_moves(void **state)
{
	for (unsigned word = 36; word < 46; word++)
		check((struct gomake){.release = 26, .ptr_size = 8, .gofunc_word = word});
}

/* Another word may lead to zeros, and these to the first name. */
static void test_zeros_are_no_trees(void **state)
{
	check((struct gomake){.release = 26, .ptr_size = 8, .first = "main.first"});
}

/* Without runtime.moduledata an inlined function has no name, but its lines are not given to the function around it. */
static void test_unknown_inlined_calls(void **state)
{
	struct gomake *g = make((struct gomake){.release = 20, .ptr_size = 8, .no_module = true});
	struct image *image;
	struct go_source *source;

	assert_int_equal(open_source(g, &image, &source), 0);
	expect(source, 0, "main.outer /src/a.go:11");
	expect(source, 0x45, "? /src/b.go:52, main.outer ?:0");
	expect(source, 0x100, "main.(*T[...]).leaf /src/a.go:70");
	go_source_destroy(source);
	image_destroy(image);
	free(g);
}

static void expect_error(const struct gomake *g, int code)
{
	struct image *image;
	struct go_source *source;

	assert_int_equal(open_source(g, &image, &source), -code);
	assert_null(source);
	image_destroy(image);
}

/* Names at wrong addresses would be worse than none. */
static void test_unknown_start_of_code(void **state)
{
	struct gomake *g = make((struct gomake){.release = 26, .ptr_size = 8, .no_module = true});

	expect_error(g, EBADMSG);
	free(g);
	g = make((struct gomake){.release = 26, .ptr_size = 8});
	gomake_set(g, GOMAKE_MODULE + 21 * 8, 8, GOMAKE_TEXT + 0x1000); /* the code has a hole */
	expect_error(g, EBADMSG);
	free(g);
}

static void test_not_go(void **state)
{
	struct gomake *g = make((struct gomake){.release = 20, .ptr_size = 8});

	gomake_set(g, GOMAKE_TABLE, 4, 0xfffffff5);
	expect_error(g, ENOENT);
	free(g);
}

/* Every parent of an inlined call is itself: the tree has no root. */
static void test_endless_tree(void **state)
{
	struct gomake *g = make((struct gomake){.release = 20, .ptr_size = 8});
	struct calls calls = {0};
	struct image *image;
	struct go_source *source;

	gomake_set(g, GOMAKE_TREE + 8, 4, 0x30);
	assert_int_equal(open_source(g, &image, &source), 0);
	assert_true(go_source_find(source, GOMAKE_TEXT + 0x30, &calls));
	assert_true(calls.len > 2 && calls.len < 1000);
	assert_string_equal(calls.data[calls.len - 1].name, "main.outer");
	assert_null(calls.data[calls.len - 1].file);
	vec_deinit(&calls);
	go_source_destroy(source);
	image_destroy(image);
	free(g);
}

/* Relocations are those of the first dynamic section. */
static void test_second_dynamic_section(void **state)
{
	enum { PHDRS = 64, PHDR_SIZE = 56, OTHER = GOMAKE_SHDRS };
	struct gomake *g = make((struct gomake){.release = 20, .ptr_size = 8, .pie = true});
	struct image *image;
	struct go_source *source;

	gomake_set(g, 56, 2, 3); /* e_phnum */
	memcpy(g->data + PHDRS + 2 * PHDR_SIZE, g->data + PHDRS + PHDR_SIZE, PHDR_SIZE);
	gomake_set(g, PHDRS + 2 * PHDR_SIZE + 16, 8, GOMAKE_BASE + OTHER);
	gomake_set(g, OTHER, 8, DT_RELASZ);
	gomake_set(g, OTHER + 8, 8, 1);
	assert_int_equal(open_source(g, &image, &source), 0);
	expect_all(source);
	go_source_destroy(source);
	image_destroy(image);
	free(g);
}

/* Many functions of a Go 1.13 program, all with the same tables by address, which are very long. */
enum {
	CROWD = 8192,
	CROWD_RECORDS = GOMAKE_TABLE + 0x40000,
	CROWD_RECORD = 96,
	CROWD_TREES = CROWD_RECORDS + CROWD * CROWD_RECORD,
	CROWD_LINES = CROWD_TREES + (32 << 20),
	CROWD_NAME = CROWD_LINES + (32 << 20),
	CROWD_LEN = CROWD_NAME + 64,
};

static void put_at(uint8_t *data, size_t at, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		data[at + i] = (uint8_t)(value >> 8 * i);
}

/* Each byte of code has another value: `first` and what is before it, by turns. */
static void put_values(uint8_t *data, size_t at, size_t end, uint8_t first)
{
	for (size_t i = at; i + 2 < end; i += 2) { /* a zero ends it */
		data[i] = i == at ? first : (i - at) / 2 % 2 ? 1 : 2;
		data[i + 1] = 1;
	}
}

static uint64_t crowd_start(uint64_t index)
{
	return (index + 1) << 32;
}

static uint8_t *make_crowd(void)
{
	struct gomake *g = make((struct gomake){.release = 13, .ptr_size = 8});
	uint8_t *data = calloc(1, CROWD_LEN);

	assert_non_null(data);
	memcpy(data, g->data, GOMAKE_TABLE + 8);
	free(g);
	put_at(data, 64 + 32, 8, CROWD_LEN); /* size of the segment, in the file and in memory */
	put_at(data, 64 + 40, 8, CROWD_LEN);
	put_at(data, GOMAKE_TABLE + 8, 8, CROWD);
	for (uint64_t i = 0; i <= CROWD; i++) {
		size_t record = CROWD_RECORDS + i * CROWD_RECORD, entry = GOMAKE_TABLE + 16 + i * 16;

		put_at(data, entry, 8, crowd_start(i));
		put_at(data, entry + 8, 8, i < CROWD ? record - GOMAKE_TABLE : 16);
		if (i == CROWD)
			break;
		put_at(data, record, 8, crowd_start(i));
		put_at(data, record + 8, 4, CROWD_NAME - GOMAKE_TABLE);
		put_at(data, record + 28, 4, CROWD_LINES - GOMAKE_TABLE);
		put_at(data, record + 32, 4, 3); /* tables of indices into a tree */
		data[record + 39] = 5;           /* trees and the like */
		for (unsigned n = 0; n < 3; n++)
			put_at(data, record + 40 + 4 * n, 4, CROWD_TREES - GOMAKE_TABLE);
		for (unsigned n = 0; n < 5; n++)
			put_at(data, record + 56 + 8 * n, 8, GOMAKE_BASE);
	}
	put_values(data, CROWD_TREES, CROWD_LINES, 0); /* -1: nothing was inlined */
	put_values(data, CROWD_LINES, CROWD_NAME, 22); /* lines 10 and 9 */
	strcpy((char *)data + CROWD_NAME, "main.crowd");
	return data;
}

/* Without a limit it would take longer than a test may. */
static void test_tables_without_end(void **state)
{
	uint8_t *data = make_crowd();
	struct calls calls = {0};
	struct go_source *source;
	struct image *image;

	assert_int_equal(image_open_memory(data, CROWD_LEN, NULL, &image), 0);
	assert_int_equal(go_source_create(image, NULL, &source), 0);
	for (uint64_t i = 0; i < CROWD; i += CROWD - 1) {
		assert_true(go_source_find(source, crowd_start(i) + 1000, &calls));
		assert_int_equal(calls.len, 1);
		assert_string_equal(calls.data[0].name, "main.crowd");
		assert_false(go_source_find(source, crowd_start(i) + (12 << 20), &calls)); /* too far */
	}
	go_source_destroy(source);
	image_destroy(image);
	vec_deinit(&calls);
	free(data);
}

static void look_everywhere(const struct gomake *g)
{
	struct calls calls = {0};
	struct image *image = NULL;
	struct go_source *source = NULL;

	if (image_open_memory(g->data, sizeof(g->data), NULL, &image) < 0)
		return;
	if (go_source_create(image, NULL, &source) == 0)
		for (uint64_t offset = 0; offset < 0x180; offset += 0x10)
			go_source_find(source, GOMAKE_TEXT + offset, &calls);
	go_source_destroy(source);
	image_destroy(image);
	vec_deinit(&calls);
}

/* Whatever a byte is changed to, what is read lies in the file. AddressSanitizer watches. */
static void test_damaged(void **state)
{
	static const uint8_t values[] = {0, 0x7f, 0xff};

	for (size_t i = 0; i < RELEASES; i++) {
		struct gomake *g = make((struct gomake){.release = releases[i], .ptr_size = 8, .pie = i % 2});

		for (size_t at = GOMAKE_TABLE; at < GOMAKE_SHDRS; at++) {
			uint8_t before = g->data[at];

			g->data[at] = values[at % 3];
			look_everywhere(g);
			g->data[at] = before;
		}
		free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_layouts),
		cmocka_unit_test(test_place_of_trees_moves),
		cmocka_unit_test(test_zeros_are_no_trees),
		cmocka_unit_test(test_unknown_inlined_calls),
		cmocka_unit_test(test_unknown_start_of_code),
		cmocka_unit_test(test_not_go),
		cmocka_unit_test(test_endless_tree),
		cmocka_unit_test(test_second_dynamic_section),
		cmocka_unit_test(test_tables_without_end),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
