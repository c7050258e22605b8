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
		cmocka_unit_test(test_unknown_inlined_calls),
		cmocka_unit_test(test_unknown_start_of_code),
		cmocka_unit_test(test_not_go),
		cmocka_unit_test(test_endless_tree),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
