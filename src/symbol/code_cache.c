/* SPDX-License-Identifier: MIT */
#include "symbol/code_cache.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sorted.h"
#include "symbol/code_cache_format.h"

struct code_cache {
	struct store_entry entry;
	const struct cached_header *header;
	const struct cached_block *units;
	const struct cached_piece *pieces;
	size_t npieces;

	const struct cached_piece *symbol_pieces;
	size_t nsymbol_pieces;
	const struct cached_symbol *symbols;
	size_t nsymbols;
	const char *names;
	size_t names_len;
};

/* A map that lies in the cache. */
struct cached_map {
	struct unit_map map;
	const struct cached_file *files;
	const struct cached_name *names;
	size_t nfiles;
	size_t nnames;
	const char *strings; /* the last byte is NUL */
	size_t strings_len;
};

DEFINE_CLEANUP(code_cache, struct code_cache *, code_cache_destroy)

/* The block's bytes if they are there and undamaged, else NULL. */
static const uint8_t *get_block(const struct store_entry *entry, const struct cached_block *block)
{
	const uint8_t *data;

	if (!block->offset || block->offset % 8 || block->offset > entry->len ||
	    block->len > entry->len - block->offset)
		return NULL;
	data = (const uint8_t *)entry->data + block->offset;
	return libdeflate_crc32(0, data, block->len) == block->crc ? data : NULL;
}

/* Takes `count` things of `size` bytes from the front; NULL when they are not there. */
static const void *take(const uint8_t **p, size_t *left, uint64_t count, size_t size)
{
	const void *taken = *p;

	if (count > *left / size)
		return NULL;
	*p += count * size;
	*left -= count * size;
	return taken;
}

static bool open_symbols(struct code_cache *cache)
{
	const struct cached_block *block = &cache->header->symbols;
	const uint8_t *p = get_block(&cache->entry, block);
	size_t left = block->len;
	const struct cached_symbols *header = p ? take(&p, &left, 1, sizeof(*header)) : NULL;

	if (!header)
		return false;
	cache->nsymbol_pieces = header->npieces;
	cache->symbol_pieces = take(&p, &left, header->npieces, sizeof(*cache->symbol_pieces));
	cache->nsymbols = header->nsymbols;
	cache->symbols = cache->symbol_pieces ? take(&p, &left, header->nsymbols, sizeof(*cache->symbols)) : NULL;
	cache->names_len = header->names_len;
	cache->names = cache->symbols ? take(&p, &left, header->names_len, 1) : NULL;
	return cache->names;
}

static bool open_parts(struct code_cache *cache)
{
	const struct cached_header *header = cache->entry.data;

	if (cache->entry.len < sizeof(*header) ||
	    libdeflate_crc32(0, &header->nunits, sizeof(*header) - sizeof(header->crc)) != header->crc)
		return false;
	cache->header = header;
	cache->units = (const struct cached_block *)get_block(&cache->entry, &header->units);
	cache->pieces = (const struct cached_piece *)get_block(&cache->entry, &header->pieces);
	cache->npieces = header->pieces.len / sizeof(*cache->pieces);
	return cache->units && header->units.len / sizeof(*cache->units) == header->nunits && cache->pieces &&
	       open_symbols(cache);
}

int code_cache_open(const struct store *store, const char *build_id, struct code_cache **out)
{
	_cleanup_(cleanup_code_cache) struct code_cache *cache = calloc(1, sizeof(*cache));
	int ret;

	if (!cache)
		return -ENOMEM;
	ret = store_get(store, build_id, CODE_CACHE_VERSION, &cache->entry);
	if (ret < 0)
		return ret;
	if (!open_parts(cache))
		return -ENOENT;
	*out = steal_ptr(cache);
	return 0;
}

void code_cache_destroy(struct code_cache *cache)
{
	if (!cache)
		return;
	store_release(&cache->entry);
	free(cache);
}

static uint32_t find_piece(const struct cached_piece *pieces, size_t n, uint64_t address)
{
	size_t upto = sorted_upto(pieces, n, .start, address);

	return upto ? pieces[upto - 1].id : PIECE_NONE;
}

bool code_cache_symbol(const struct code_cache *cache, uint64_t vaddr, struct symbol *out)
{
	uint32_t index = find_piece(cache->symbol_pieces, cache->nsymbol_pieces, vaddr);
	const struct cached_symbol *symbol;
	uint32_t source, len;

	if (index >= cache->nsymbols)
		return false;
	symbol = &cache->symbols[index];
	source = symbol->len_source & 0x7f;
	len = symbol->len_source >> 8;
	if (source >= SYMBOL_SOURCE_COUNT || symbol->name > cache->names_len || len > cache->names_len - symbol->name)
		return false;
	*out = (struct symbol){
		.start = symbol->start,
		.end = symbol->end,
		.name = cache->names + symbol->name,
		.name_len = len,
		.source = (enum symbol_source)source,
		.own = symbol->len_source >> 7 & 1,
	};
	return true;
}

uint32_t code_cache_nunits(const struct code_cache *cache)
{
	return cache->header->nunits;
}

uint32_t code_cache_unit_at(const struct code_cache *cache, uint64_t vaddr)
{
	uint32_t unit = find_piece(cache->pieces, cache->npieces, vaddr);

	return unit < cache->header->nunits ? unit : MAP_NONE;
}

static const char *string_at(const struct cached_map *cached, uint32_t offset)
{
	return offset && offset < cached->strings_len ? cached->strings + offset : NULL;
}

static bool cached_name(struct unit_map *map, uint32_t id, struct map_name *out)
{
	const struct cached_map *cached = (const struct cached_map *)map;

	*out = (struct map_name){0};
	if (id >= cached->nnames)
		return false;
	out->linkage = string_at(cached, cached->names[id].linkage);
	out->name = string_at(cached, cached->names[id].name);
	return out->linkage || out->name;
}

static bool cached_file(struct unit_map *map, uint16_t id, struct map_file *out)
{
	const struct cached_map *cached = (const struct cached_map *)map;

	if (id >= cached->nfiles)
		return false;
	out->name = string_at(cached, cached->files[id].name);
	out->dir = string_at(cached, cached->files[id].dir);
	out->comp_dir = string_at(cached, cached->files[id].comp_dir);
	return out->name;
}

static void cached_destroy(struct unit_map *map)
{
	free(map);
}

static const struct unit_map_ops cached_ops = {
	.name = cached_name,
	.file = cached_file,
	.destroy = cached_destroy,
};

static bool open_map(struct cached_map *cached, const uint8_t *p, size_t left)
{
	const struct cached_unit *header = take(&p, &left, 1, sizeof(*header));
	struct unit_map *map = &cached->map;
	struct cached_unit unit;

	if (!header)
		return false;
	unit = *header; /* the file may be cut short meanwhile */
	map->ops = &cached_ops;
	map->whole = true;
	map->base = unit.base;
	map->npieces = unit.npieces;
	map->pieces = take(&p, &left, unit.npieces, sizeof(*map->pieces));
	map->nscopes = unit.nscopes;
	map->scopes = map->pieces ? take(&p, &left, unit.nscopes, sizeof(*map->scopes)) : NULL;
	map->nrows = unit.nrows;
	map->rows = map->scopes ? take(&p, &left, unit.nrows, sizeof(*map->rows)) : NULL;
	cached->nfiles = unit.nfiles;
	cached->files = map->rows ? take(&p, &left, unit.nfiles, sizeof(*cached->files)) : NULL;
	cached->nnames = unit.nnames;
	cached->names = cached->files ? take(&p, &left, unit.nnames, sizeof(*cached->names)) : NULL;
	cached->strings_len = unit.strings_len;
	cached->strings = cached->names ? take(&p, &left, unit.strings_len, 1) : NULL;
	return cached->strings && unit.strings_len && cached->strings[unit.strings_len - 1] == '\0';
}

struct unit_map *code_cache_map(const struct code_cache *cache, uint32_t unit)
{
	const struct cached_block *block = unit < cache->header->nunits ? &cache->units[unit] : NULL;
	const uint8_t *p = block ? get_block(&cache->entry, block) : NULL;
	struct cached_map *cached = p ? calloc(1, sizeof(*cached)) : NULL;

	if (cached && !open_map(cached, p, block->len)) {
		free(cached);
		cached = NULL;
	}
	return cached ? &cached->map : NULL;
}

const void *code_cache_raw(const struct code_cache *cache, enum code_cache_part part, uint32_t unit, size_t *len)
{
	const struct cached_block *block = part == CODE_CACHE_SYMBOLS  ? &cache->header->symbols
					   : part == CODE_CACHE_PIECES ? &cache->header->pieces
								       : NULL;

	if (part == CODE_CACHE_UNIT && unit < cache->header->nunits)
		block = &cache->units[unit];
	*len = block ? block->len : 0;
	return block ? get_block(&cache->entry, block) : NULL;
}
