/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <libdeflate.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/code_cache.h"
#include "symbol/code_cache_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "0123456789abcdef";

enum { MAX_UNITS = 64 };

static char directory[] = "/tmp/stakeout-fuzz-XXXXXX";

static void remove_directory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s.sym", directory, key);
	unlink(path);
	rmdir(directory);
}

/* One directory, which the program removes at its end. */
static struct store *open_store(void)
{
	static struct store *store;

	if (store)
		return store;
	if (!mkdtemp(directory) || store_open(directory, STORE_DEFAULT_LIMIT, NULL, &store) != 0)
		abort();
	atexit(remove_directory);
	return store;
}

static void put_right(uint8_t *payload, size_t size, struct cached_block *block)
{
	if (block->offset <= size && block->len <= size - block->offset)
		block->crc = libdeflate_crc32(0, payload + block->offset, block->len);
}

/* The checksums are put right, or nothing behind them would ever be looked at. */
static void put_all_right(uint8_t *payload, size_t size)
{
	struct cached_header header;
	struct cached_block block;

	if (size < sizeof(header))
		return;
	memcpy(&header, payload, sizeof(header));
	for (uint32_t i = 0; i < header.nunits && i < MAX_UNITS && header.units.offset < size &&
			     (i + 1) * sizeof(block) <= size - header.units.offset;
	     i++) {
		memcpy(&block, payload + header.units.offset + i * sizeof(block), sizeof(block));
		put_right(payload, size, &block);
		memcpy(payload + header.units.offset + i * sizeof(block), &block, sizeof(block));
	}
	put_right(payload, size, &header.symbols);
	put_right(payload, size, &header.pieces);
	put_right(payload, size, &header.units);
	header.crc = libdeflate_crc32(0, &header.nunits, sizeof(header) - sizeof(header.crc));
	memcpy(payload, &header, sizeof(header));
}

static size_t touch(const char *s, size_t len)
{
	size_t sum = 0;

	for (size_t i = 0; s && i < len; i++)
		sum += (uint8_t)s[i];
	return sum;
}

static size_t touch_string(const char *s)
{
	return s ? strlen(s) : 0;
}

static size_t look_at_map(struct unit_map *map)
{
	struct map_name name;
	struct map_file file;
	size_t sum = 0;

	for (uint64_t at = map->base; at < map->base + 0x400; at += 3) {
		uint32_t scope = unit_map_scope(map, at);
		const struct map_row *row = unit_map_row(map, at);

		for (unsigned i = 0; scope < map->nscopes && i < 16; i++) {
			if (map->ops->name(map, map->scopes[scope].name, &name))
				sum += touch_string(name.linkage) + touch_string(name.name);
			if (map->ops->file(map, map->scopes[scope].file, &file))
				sum += touch_string(file.name);
			scope = map->scopes[scope].parent;
		}
		if (row && map->ops->file(map, row->file, &file))
			sum += touch_string(file.name) + touch_string(file.dir) + touch_string(file.comp_dir);
	}
	return sum;
}

static void look_at(const struct code_cache *cache)
{
	size_t sum = 0, len;

	for (uint64_t at = 0; at < 0x4000; at += 5) {
		struct symbol symbol;

		if (code_cache_symbol(cache, at, &symbol))
			sum += touch(symbol.name, symbol.name_len);
		if (code_cache_unit_at(cache, at) != MAP_NONE &&
		    code_cache_unit_at(cache, at) >= code_cache_nunits(cache))
			abort();
	}
	for (uint32_t i = 0; i < code_cache_nunits(cache) && i < MAX_UNITS; i++) {
		struct unit_map *map = code_cache_map(cache, i);

		if (map)
			sum += look_at_map(map);
		unit_map_destroy(map);
		sum += touch(code_cache_raw(cache, CODE_CACHE_UNIT, i, &len), len);
	}
	__asm__ volatile("" : : "r"(sum)); /* or the compiler would drop the reads */
}

/* The input is the payload. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store *store = open_store();
	struct code_cache *cache = NULL;
	uint8_t *copy = malloc(size + 1);
	struct iovec part = {copy, size};

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	put_all_right(copy, size);
	if (store_put(store, key, CODE_CACHE_VERSION, &part, 1, NULL) == 0 && code_cache_open(store, key, &cache) == 0)
		look_at(cache);
	code_cache_destroy(cache);
	free(copy);
	return 0;
}
