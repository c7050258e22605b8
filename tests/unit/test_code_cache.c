/* SPDX-License-Identifier: MIT */
/* What is kept of a program's code: the same answers as without it, and never wrong ones. */
#include "dwarfchain.h"
#include "scratch.h"

#include <errno.h>

#include "symbol/code_cache.h"

static const char key[] = "0123456789abcdef";

struct fixture {
	struct scratch scratch;
	struct store *store;
	struct image *image;
	struct dwarf *dwarf;
	struct symtab *symtab;
	struct unit_map **maps;
	struct code_cache_contents contents;
	struct code_cache *cache;
	uint64_t start, end; /* of the code */
};

static void start(struct fixture *f)
{
	struct dwarf_options options = {0};
	struct span text;
	char path[96];

	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, "a.c",
		     "volatile int sink;\n"
		     "static inline __attribute__((always_inline)) void leaf(int x) { sink = x; }\n"
		     "static __attribute__((noinline)) void local(int x) { leaf(x); leaf(7); }\n"
		     "void outer(int x) { leaf(x); local(x); }\n");
	scratch_text(&f->scratch, "b.c", "int other(int x)\n{\n	return x * 3;\n}\n");
	scratch_run(&f->scratch, "cc -g -O2 -shared -fPIC -nostdlib -o l.so a.c b.c");
	snprintf(path, sizeof(path), "%s/cache", f->scratch.dir);
	assert_int_equal(store_open(path, STORE_DEFAULT_LIMIT, NULL, &f->store), 0);
	f->image = options.image = scratch_image(&f->scratch, "l.so");
	assert_int_equal(dwarf_create(&options, NULL, &f->dwarf), 0);
	assert_int_equal(symtab_create(f->image, NULL, NULL, &f->symtab), 0);
	assert_int_equal(dwarf_nunits(f->dwarf), 2);
	f->maps = calloc(dwarf_nunits(f->dwarf), sizeof(*f->maps));
	f->contents = (struct code_cache_contents){
		.symtab = f->symtab,
		.units = dwarf_units(f->dwarf),
		.nunits = dwarf_nunits(f->dwarf),
		.maps = f->maps,
	};
	text = image_section(f->image, ".text");
	f->start = text.vaddr - 0x20;
	f->end = text.vaddr + text.len + 0x20;
}

static void read_unit(struct fixture *f, uint32_t unit)
{
	f->maps[unit] = dwarf_map_unit(f->dwarf, unit);
	assert_non_null(f->maps[unit]);
}

static void finish(struct fixture *f)
{
	code_cache_destroy(f->cache);
	for (uint32_t i = 0; i < f->contents.nunits; i++)
		unit_map_destroy(f->maps[i]);
	free(f->maps);
	symtab_destroy(f->symtab);
	dwarf_destroy(f->dwarf);
	image_destroy(f->image);
	store_close(f->store);
	scratch_deinit(&f->scratch);
}

static void write_and_open(struct fixture *f)
{
	assert_int_equal(code_cache_write(f->store, key, &f->contents, NULL), 0);
	code_cache_destroy(f->cache);
	f->cache = NULL;
	assert_int_equal(code_cache_open(f->store, key, &f->cache), 0);
}

/* 0: the cache knows nothing of the address; 1: it says what the DWARF says; -1: something else. */
static int compare_chains(struct fixture *f, const struct code_cache *cache, uint64_t at)
{
	uint32_t unit = code_cache_unit_at(cache, at);
	struct unit_map *map = unit == MAP_NONE ? NULL : code_cache_map(cache, unit);
	char expected[CHAIN_MAX], found[CHAIN_MAX];

	if (!map)
		return 0;
	chain_of_map(map, at, found);
	unit_map_destroy(map);
	chain_at(f->dwarf, at, expected);
	return strcmp(found, expected) == 0 && unit == dwarf_unit_at(f->dwarf, at) ? 1 : -1;
}

static int compare_symbols(struct fixture *f, const struct code_cache *cache, uint64_t at)
{
	struct symbol expected, found;
	bool known = symtab_find(f->symtab, at, &expected);

	if (!code_cache_symbol(cache, at, &found))
		return known ? 0 : 1;
	return known && found.start == expected.start && found.end == expected.end && found.source == expected.source &&
			       found.own == expected.own && found.name_len == expected.name_len &&
			       memcmp(found.name, expected.name, found.name_len) == 0
		       ? 1
		       : -1;
}

/* Whole paths too: comp_dir, directory and name. */
static void check_files(struct fixture *f, uint32_t unit)
{
	struct unit_map *cached = code_cache_map(f->cache, unit), *built = f->maps[unit];

	assert_non_null(cached);
	assert_int_equal(cached->nrows, built->nrows);
	assert_int_equal(cached->nscopes, built->nscopes);
	assert_int_equal(cached->npieces, built->npieces);
	for (size_t i = 0; i < built->nrows; i++) {
		struct map_file a = {0}, b = {0};

		assert_int_equal(cached->rows[i].column, built->rows[i].column);
		assert_int_equal(cached->ops->file(cached, cached->rows[i].file, &a),
				 built->ops->file(built, built->rows[i].file, &b));
		assert_int_equal(a.dir != NULL, b.dir != NULL);
		assert_int_equal(a.comp_dir != NULL, b.comp_dir != NULL);
		if (b.name)
			assert_string_equal(a.name, b.name);
		if (b.dir)
			assert_string_equal(a.dir, b.dir);
		if (b.comp_dir)
			assert_string_equal(a.comp_dir, b.comp_dir);
	}
	unit_map_destroy(cached);
}

static void test_round_trip(void **state)
{
	unsigned known = 0, inlined = 0;
	struct fixture f;

	start(&f);
	read_unit(&f, 0);
	read_unit(&f, 1);
	write_and_open(&f);
	assert_int_equal(code_cache_nunits(f.cache), 2);
	for (uint64_t at = f.start; at < f.end; at++) {
		char chain[CHAIN_MAX];

		chain_at(f.dwarf, at, chain);
		inlined += strstr(chain, ", ") != NULL;
		if (dwarf_unit_at(f.dwarf, at) == MAP_NONE) {
			assert_int_equal(code_cache_unit_at(f.cache, at), MAP_NONE);
		} else {
			assert_int_equal(compare_chains(&f, f.cache, at), 1);
			known++;
		}
		assert_int_equal(compare_symbols(&f, f.cache, at), 1);
	}
	assert_true(known > 10 && inlined > 3);
	check_files(&f, 0);
	check_files(&f, 1);
	assert_null(code_cache_map(f.cache, 2));
	assert_null(code_cache_map(f.cache, UINT32_MAX));
	assert_int_equal(code_cache_unit_at(f.cache, UINT64_MAX), MAP_NONE);
	finish(&f);
}

/* What is there already is kept when more is written. */
static void test_growing(void **state)
{
	struct unit_map *map;
	struct fixture f;

	start(&f);
	read_unit(&f, 0);
	write_and_open(&f);
	map = code_cache_map(f.cache, 0);
	assert_non_null(map);
	unit_map_destroy(map);
	assert_null(code_cache_map(f.cache, 1));
	/* The second run knows nothing of the first unit, nor of symbols. */
	unit_map_destroy(f.maps[0]);
	f.maps[0] = NULL;
	read_unit(&f, 1);
	f.contents.old = f.cache;
	f.contents.symtab = NULL;
	f.contents.units = NULL;
	assert_int_equal(code_cache_write(f.store, key, &f.contents, NULL), 0);
	code_cache_destroy(f.cache);
	f.cache = NULL;
	assert_int_equal(code_cache_open(f.store, key, &f.cache), 0);
	for (uint64_t at = f.start; at < f.end; at++) {
		if (dwarf_unit_at(f.dwarf, at) != MAP_NONE)
			assert_int_equal(compare_chains(&f, f.cache, at), 1);
		assert_int_equal(compare_symbols(&f, f.cache, at), 1);
	}
	finish(&f);
}

/* A unit that lacks something would stay so for ever: it is left out. */
static void test_not_whole(void **state)
{
	struct unit_map *map;
	struct fixture f;

	start(&f);
	read_unit(&f, 0);
	read_unit(&f, 1);
	f.maps[1]->whole = false;
	write_and_open(&f);
	map = code_cache_map(f.cache, 0);
	assert_non_null(map);
	unit_map_destroy(map);
	assert_null(code_cache_map(f.cache, 1));
	finish(&f);
}

/* Fewer units than before, and none at all. */
static void test_other_number_of_units(void **state)
{
	const struct pieces none = {0};
	struct fixture f;

	start(&f);
	read_unit(&f, 0);
	read_unit(&f, 1);
	write_and_open(&f);
	f.contents.old = f.cache;
	f.contents.nunits = 1;
	assert_int_equal(code_cache_write(f.store, key, &f.contents, NULL), 0);
	code_cache_destroy(f.cache);
	f.cache = NULL;
	assert_int_equal(code_cache_open(f.store, key, &f.cache), 0);
	assert_int_equal(code_cache_nunits(f.cache), 1);
	assert_null(code_cache_map(f.cache, 1));
	for (uint64_t at = f.start; at < f.end; at++)
		assert_true(compare_chains(&f, f.cache, at) >= 0); /* units that are not there are at no address */

	f.contents.old = NULL;
	f.contents.units = &none;
	f.contents.nunits = 0;
	write_and_open(&f);
	assert_int_equal(code_cache_nunits(f.cache), 0);
	assert_int_equal(code_cache_unit_at(f.cache, f.start + 0x20), MAP_NONE);
	f.contents.nunits = 2;
	finish(&f);
}

static void test_nothing(void **state)
{
	struct code_cache *cache = NULL;
	struct fixture f;

	start(&f);
	assert_int_equal(code_cache_open(f.store, key, &cache), -ENOENT);
	assert_null(cache);
	code_cache_destroy(NULL);
	finish(&f);
}

/* Any byte of the file may have been changed: then less is known, never something else. */
static void test_flipped_bytes(void **state)
{
	size_t len, refused = 0, less = 0;
	char *file;
	struct fixture f;

	start(&f);
	read_unit(&f, 0);
	read_unit(&f, 1);
	write_and_open(&f);
	file = scratch_read(&f.scratch, "cache/0123456789abcdef.sym", &len);
	for (size_t i = 0; i < len; i++) {
		struct code_cache *cache = NULL;
		bool lost = false;

		file[i] ^= (char)(1 << i % 8);
		scratch_write(&f.scratch, "cache/0123456789abcdef.sym", file, len);
		file[i] ^= (char)(1 << i % 8);
		if (code_cache_open(f.store, key, &cache) != 0) {
			refused++;
			continue;
		}
		for (uint64_t at = f.start; at < f.end; at += 5) {
			int calls = compare_chains(&f, cache, at), symbols = compare_symbols(&f, cache, at);

			assert_true(calls >= 0);
			assert_true(symbols >= 0);
			lost |= calls == 0 && dwarf_unit_at(f.dwarf, at) != MAP_NONE;
		}
		less += lost;
		code_cache_destroy(cache);
	}
	assert_true(refused > 200); /* the envelope, the header, the tables */
	assert_true(less > 100);    /* units */
	free(file);
	finish(&f);
}

/* Cut anywhere. */
static void test_cut(void **state)
{
	size_t len;
	char *file;
	struct fixture f;

	start(&f);
	read_unit(&f, 0);
	write_and_open(&f);
	file = scratch_read(&f.scratch, "cache/0123456789abcdef.sym", &len);
	for (size_t cut = 0; cut < len; cut += 7) {
		struct code_cache *cache = NULL;

		scratch_write(&f.scratch, "cache/0123456789abcdef.sym", file, cut);
		assert_int_equal(code_cache_open(f.store, key, &cache), -ENOENT);
	}
	free(file);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_growing),
		cmocka_unit_test(test_not_whole),  cmocka_unit_test(test_other_number_of_units),
		cmocka_unit_test(test_nothing),    cmocka_unit_test(test_flipped_bytes),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests_name("code_cache", tests, NULL, NULL);
}
