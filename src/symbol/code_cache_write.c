/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "symbol/code_cache.h"
#include "symbol/code_cache_format.h"

enum {
	MAX_PART = 1 << 28,   /* bytes of one block; a store has room for no more by default */
	MAX_STRING = 1 << 20, /* no reader gives a longer one, unless the file has lost its end since */
};

struct bytes {
	VEC_FIELDS(uint8_t);
};

/* Makes room for `len` more bytes; NULL when memory is exhausted. */
static void *extend(struct bytes *bytes, size_t len)
{
	if (len > MAX_PART || bytes->len + len > MAX_PART || !vec_reserve(bytes, bytes->len + len))
		return NULL;
	bytes->len += len;
	return bytes->data + bytes->len - len;
}

static bool append(struct bytes *bytes, const void *data, size_t len)
{
	void *to = len ? extend(bytes, len) : NULL;

	if (to)
		memcpy(to, data, len);
	return to || !len;
}

/* Strings, each once, one after the other; offset 0 is no string. */
struct strings {
	struct bytes bytes;
	struct u64map offsets; /* by hash */
};

static bool put_string(struct strings *strings, const char *s, uint32_t *offset)
{
	size_t len = s ? strnlen(s, MAX_STRING) : 0, at;
	const char *copy;
	uint64_t *slot;
	bool created;

	*offset = 0;
	if (!strings->bytes.len && !append(&strings->bytes, "", 1))
		return false;
	if (!s)
		return true;
	/* Copied before it is examined: it may be in a file that is being changed. */
	at = strings->bytes.len;
	if (!append(&strings->bytes, s, len) || !append(&strings->bytes, "", 1))
		return false;
	copy = (const char *)strings->bytes.data + at;
	slot = u64map_put(&strings->offsets, hash_bytes(HASH_SEED, copy, len), &created);
	if (!slot)
		return false;
	if (created || strcmp((const char *)strings->bytes.data + *slot, copy) != 0)
		*slot = at;
	else
		strings->bytes.len = at;
	*offset = (uint32_t)*slot;
	return true;
}

/* One unit on its way into the cache: its numbers of files and names are made dense. */
struct unit_writer {
	struct unit_map *map;
	struct strings strings;
	struct u64map file_numbers; /* old number to the new one + 1 */
	struct u64map name_numbers;
	VEC(struct cached_file) files;
	VEC(struct cached_name) names;
};

static void cleanup_unit_writer(struct unit_writer *w)
{
	vec_deinit(&w->strings.bytes);
	u64map_deinit(&w->strings.offsets);
	u64map_deinit(&w->file_numbers);
	u64map_deinit(&w->name_numbers);
	vec_deinit(&w->files);
	vec_deinit(&w->names);
}

static bool put_file(struct unit_writer *w, uint16_t *number)
{
	struct cached_file file = {0};
	struct map_file parts = {0};
	bool created;
	uint64_t *slot;

	if (*number == MAP_NO_FILE)
		return true;
	slot = u64map_put(&w->file_numbers, *number, &created);
	if (!slot)
		return false;
	if (created) {
		if (!w->map->ops->file(w->map, *number, &parts))
			parts = (struct map_file){0};
		*slot = w->files.len;
		if (!put_string(&w->strings, parts.name, &file.name) ||
		    !put_string(&w->strings, parts.dir, &file.dir) ||
		    !put_string(&w->strings, parts.comp_dir, &file.comp_dir) || !vec_push(&w->files, file))
			return false;
	}
	*number = (uint16_t)*slot;
	return true;
}

static bool put_name(struct unit_writer *w, uint32_t *number)
{
	struct cached_name name = {0};
	struct map_name found = {0};
	bool created;
	uint64_t *slot;

	if (*number == MAP_NONE)
		return true;
	slot = u64map_put(&w->name_numbers, *number, &created);
	if (!slot)
		return false;
	if (created) {
		w->map->ops->name(w->map, *number, &found);
		*slot = w->names.len;
		if (!put_string(&w->strings, found.linkage, &name.linkage) ||
		    !put_string(&w->strings, found.name, &name.name) || !vec_push(&w->names, name))
			return false;
	}
	*number = (uint32_t)*slot;
	return true;
}

/* The arrays, with the new numbers, straight into the block. */
static bool put_arrays(struct unit_writer *w, struct bytes *out)
{
	const struct unit_map *map = w->map;
	struct map_scope *scopes;
	struct map_row *rows;

	if (!append(out, map->pieces, map->npieces * sizeof(*map->pieces)) ||
	    !append(out, map->scopes, map->nscopes * sizeof(*map->scopes)) ||
	    !append(out, map->rows, map->nrows * sizeof(*map->rows)))
		return false;
	rows = (struct map_row *)(out->data + out->len) - map->nrows;
	scopes = (struct map_scope *)rows - map->nscopes;
	for (size_t i = 0; i < map->nscopes; i++)
		if (!put_file(w, &scopes[i].file) || !put_name(w, &scopes[i].name))
			return false;
	for (size_t i = 0; i < map->nrows; i++)
		if (!put_file(w, &rows[i].file))
			return false;
	return true;
}

static bool write_unit(struct unit_map *map, struct bytes *out)
{
	_cleanup_(cleanup_unit_writer) struct unit_writer w = {.map = map};
	struct cached_unit header = {
		.base = map->base,
		.npieces = (uint32_t)map->npieces,
		.nscopes = (uint32_t)map->nscopes,
		.nrows = (uint32_t)map->nrows,
	};
	uint32_t none;

	if (!put_string(&w.strings, NULL, &none) || !append(out, &header, sizeof(header)) || !put_arrays(&w, out) ||
	    !append(out, w.files.data, w.files.len * sizeof(*w.files.data)) ||
	    !append(out, w.names.data, w.names.len * sizeof(*w.names.data)) ||
	    !append(out, w.strings.bytes.data, w.strings.bytes.len))
		return false;
	header.nfiles = (uint32_t)w.files.len;
	header.nnames = (uint32_t)w.names.len;
	header.strings_len = (uint32_t)w.strings.bytes.len;
	memcpy(out->data, &header, sizeof(header));
	return true;
}

static bool put_pieces(struct bytes *out, const struct pieces *pieces)
{
	for (size_t i = 0; i < pieces->len; i++) {
		struct cached_piece piece = {.start = pieces->data[i].start, .id = pieces->data[i].id};

		if (!append(out, &piece, sizeof(piece)))
			return false;
	}
	return true;
}

static bool write_symbols(const struct symtab *tab, struct bytes *out)
{
	const struct pieces *pieces = symtab_pieces(tab);
	struct cached_symbols header = {.npieces = (uint32_t)pieces->len, .nsymbols = (uint32_t)symtab_len(tab)};
	struct bytes names = {0};
	bool ok = append(out, &header, sizeof(header)) && put_pieces(out, pieces);

	for (size_t i = 0; ok && i < symtab_len(tab); i++) {
		struct symbol symbol = symtab_at(tab, i);
		struct cached_symbol cached = {
			.start = symbol.start,
			.end = symbol.end,
			.name = (uint32_t)names.len,
			.len_source = (uint32_t)symbol.name_len << 8 | (uint32_t)symbol.own << 7 | symbol.source,
		};

		ok = append(&names, symbol.name, symbol.name_len) && append(out, &cached, sizeof(cached));
	}
	header.names_len = (uint32_t)names.len;
	ok = ok && append(out, names.data, names.len);
	if (ok)
		memcpy(out->data, &header, sizeof(header));
	vec_deinit(&names);
	return ok;
}

/* The payload as it grows: blocks, and where each is. */
struct payload {
	VEC(struct bytes) blocks; /* owned */
	uint64_t len;
};

static void cleanup_payload(struct payload *payload)
{
	for (size_t i = 0; i < payload->blocks.len; i++)
		vec_deinit(&payload->blocks.data[i]);
	vec_deinit(&payload->blocks);
}

/* Takes the bytes over, and fills them up to a multiple of 8. */
static bool add_block(struct payload *payload, struct bytes *bytes, struct cached_block *block)
{
	static const uint8_t zeroes[8];
	size_t len = bytes->len;

	*block = (struct cached_block){
		.offset = payload->len,
		.len = (uint32_t)len,
		.crc = libdeflate_crc32(0, bytes->data, len),
	};
	if (!append(bytes, zeroes, -len % 8) || !vec_push(&payload->blocks, *bytes)) {
		vec_deinit(bytes);
		return false;
	}
	payload->len += bytes->len;
	*bytes = (struct bytes){0};
	return true;
}

static bool add_copy(struct payload *payload, const struct code_cache *old, enum code_cache_part part, uint32_t unit,
		     struct cached_block *block)
{
	struct bytes bytes = {0};
	size_t len;
	const void *data = code_cache_raw(old, part, unit, &len);

	if (!data)
		return true;
	if (!append(&bytes, data, len)) {
		vec_deinit(&bytes);
		return false;
	}
	return add_block(payload, &bytes, block);
}

static bool add_units(struct payload *payload, const struct code_cache_contents *contents, struct cached_block *table)
{
	VEC(struct cached_block) blocks = {0};
	struct bytes bytes = {0};
	bool ok = true;

	for (uint32_t i = 0; ok && i < contents->nunits; i++) {
		struct cached_block block = {0};
		struct unit_map *map = contents->maps[i];

		if (contents->old)
			ok = add_copy(payload, contents->old, CODE_CACHE_UNIT, i, &block);
		if (ok && !block.offset && map && map->whole) {
			ok = write_unit(map, &bytes) && add_block(payload, &bytes, &block);
			vec_deinit(&bytes);
		}
		ok = ok && vec_push(&blocks, block);
	}
	ok = ok && append(&bytes, blocks.data, blocks.len * sizeof(*blocks.data)) && add_block(payload, &bytes, table);
	vec_deinit(&bytes);
	vec_deinit(&blocks);
	return ok;
}

static bool add_tables(struct payload *payload, const struct code_cache_contents *contents,
		       struct cached_header *header)
{
	struct bytes bytes = {0};
	bool ok;

	if (contents->symtab)
		ok = write_symbols(contents->symtab, &bytes) && add_block(payload, &bytes, &header->symbols);
	else
		ok = add_copy(payload, contents->old, CODE_CACHE_SYMBOLS, 0, &header->symbols);
	vec_deinit(&bytes);
	if (ok && contents->units)
		ok = put_pieces(&bytes, contents->units) && add_block(payload, &bytes, &header->pieces);
	else if (ok)
		ok = add_copy(payload, contents->old, CODE_CACHE_PIECES, 0, &header->pieces);
	vec_deinit(&bytes);
	return ok;
}

static int put(const struct store *store, const char *build_id, const struct payload *payload, struct err *err)
{
	struct iovec *parts = calloc(payload->blocks.len, sizeof(*parts));
	int ret;

	if (!parts)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < payload->blocks.len; i++)
		parts[i] = (struct iovec){payload->blocks.data[i].data, payload->blocks.data[i].len};
	ret = store_put(store, build_id, CODE_CACHE_VERSION, parts, (int)payload->blocks.len, err);
	free(parts);
	return ret;
}

int code_cache_write(const struct store *store, const char *build_id, const struct code_cache_contents *contents,
		     struct err *err)
{
	_cleanup_(cleanup_payload) struct payload payload = {0};
	struct cached_header header = {.nunits = contents->nunits};
	struct cached_block ignored;
	struct bytes bytes = {0};

	if (!append(&bytes, &header, sizeof(header)) || !add_block(&payload, &bytes, &ignored) ||
	    !add_tables(&payload, contents, &header) || !add_units(&payload, contents, &header.units))
		return err_set(err, ENOMEM, "out of memory");
	header.crc = libdeflate_crc32(0, &header.nunits, sizeof(header) - sizeof(header.crc));
	memcpy(payload.blocks.data[0].data, &header, sizeof(header));
	return put(store, build_id, &payload, err);
}
