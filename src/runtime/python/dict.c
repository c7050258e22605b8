/* SPDX-License-Identifier: MIT */
#include "runtime/python/dict.h"

#include <string.h>

enum {
	FIRST_WITH_KINDS = 11, /* the first version with log2 sizes and kinds in the keys */
	FIRST_WITH_SIZES = 13, /* the first whose array of values begins with their number */
	OBJECT_TYPE = 8,
	DICT_KEYS = 32, /* PyDictObject, the same in all versions */
	DICT_VALUES = 40,
	TYPE_BASIC_SIZE = 32, /* PyTypeObject, likewise */
	TYPE_FLAGS = 168,
	TYPE_DICT_OFFSET = 288,
	TYPE_INLINE_VALUES = 1 << 2, /* a flag, since 3.13 */
	/* Where PyHeapTypeObject has ht_cached_keys: not the same in any two versions, and found by what it points to. */
	FIRST_CACHED_KEYS = 800,
	LAST_CACHED_KEYS = 960,
	KIND_GENERAL = 0,
	SET_MASK = 32, /* PySetObject, likewise: how many entries there are less one, */
	SET_TABLE = 40, /* and where: pairs of a member and its hash */
	SET_SLOTS = PYTHON_MAX_ENTRIES * 8,
	MAX_KEY = 64,
};

/* The entries of a PyDictKeysObject. */
struct entries {
	uint64_t start;
	uint64_t len;
	unsigned stride;
	unsigned key;     /* offset in an entry */
	uint64_t values;  /* where they are, if not in the entries */
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static unsigned index_width(uint64_t size)
{
	return size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
}

static bool find_entries(const struct python_layout *layout, struct mem *mem, uint64_t keys, uint64_t values,
			 struct entries *out)
{
	uint64_t head[5];
	uint8_t log2_index, kind;

	if (!mem_read_exact(mem, keys, head, sizeof(head)))
		return false;
	out->values = values;
	if (python_minor(layout) < FIRST_WITH_KINDS) {
		if (head[1] > UINT32_MAX)
			return false;
		out->stride = 24;
		out->key = 8;
		out->len = head[4];
		out->start = keys + 40 + head[1] * index_width(head[1]);
	} else {
		log2_index = (uint8_t)(head[1] >> 8);
		kind = (uint8_t)(head[1] >> 16);
		if (log2_index > 40)
			return false;
		out->stride = kind == KIND_GENERAL ? 24 : 16;
		out->key = kind == KIND_GENERAL ? 8 : 0;
		out->len = head[3];
		out->start = keys + 32 + (UINT64_C(1) << log2_index);
	}
	return out->len <= PYTHON_MAX_ENTRIES;
}

static void visit_entries(struct mem *mem, const struct entries *entries, python_visit visit, void *ctx)
{
	for (uint64_t i = 0; i < entries->len; i++) {
		uint64_t pair[2];

		if (!mem_read_exact(mem, entries->start + i * entries->stride + entries->key, pair, sizeof(pair)))
			return;
		if (entries->values && !read_u64(mem, entries->values + i * 8, &pair[1]))
			return;
		pair[1] &= ~UINT64_C(3); /* tags */
		if (pair[0] && pair[1] && !visit(ctx, pair[0], pair[1]))
			return;
	}
}

/* Where the values are in what a dictionary or an object points to. */
static uint64_t skip_sizes(const struct python_layout *layout, uint64_t values)
{
	return values && python_minor(layout) >= FIRST_WITH_SIZES ? values + 8 : values;
}

void python_dict_visit(const struct python_layout *layout, struct mem *mem, uint64_t dict, python_visit visit, void *ctx)
{
	uint64_t keys, values;
	struct entries entries;

	if (read_u64(mem, dict + DICT_KEYS, &keys) && read_u64(mem, dict + DICT_VALUES, &values) &&
	    find_entries(layout, mem, keys, skip_sizes(layout, values), &entries))
		visit_entries(mem, &entries, visit, ctx);
}

struct search {
	const struct python_layout *layout;
	struct mem *mem;
	const char *key;
	size_t len;
	uint64_t value;
};

/* An ASCII str says its length, and its characters follow. */
static bool compare_key(void *ctx, uint64_t key, uint64_t value)
{
	struct search *search = ctx;
	uint8_t bytes[48 + MAX_KEY];
	size_t ascii = search->layout->at[PY_STR_ASCII];
	uint64_t len;

	if (ascii > 48 || !mem_read_exact(search->mem, key, bytes, ascii + search->len))
		return true;
	memcpy(&len, bytes + 16, sizeof(len));
	if (len != search->len || memcmp(bytes + ascii, search->key, search->len) != 0)
		return true;
	search->value = value;
	return false;
}

static struct search begin_search(const struct python_layout *layout, struct mem *mem, const char *key)
{
	size_t len = strlen(key);

	return (struct search){.layout = layout, .mem = mem, .key = key, .len = len < MAX_KEY ? len : MAX_KEY};
}

uint64_t python_dict_get(const struct python_layout *layout, struct mem *mem, uint64_t dict, const char *key)
{
	struct search search = begin_search(layout, mem, key);

	python_dict_visit(layout, mem, dict, compare_key, &search);
	return search.value;
}

/* A member that was taken out leaves another object in its place, with a hash that no object has. */
void python_set_visit(struct mem *mem, uint64_t set, python_visit_member visit, void *ctx)
{
	uint64_t mask, table;

	if (!read_u64(mem, set + SET_MASK, &mask) || !read_u64(mem, set + SET_TABLE, &table))
		return;
	for (uint64_t i = 0; i <= mask && i < SET_SLOTS; i++) {
		uint64_t entry[2];

		if (!mem_read_exact(mem, table + i * sizeof(entry), entry, sizeof(entry)))
			return;
		if (entry[0] && entry[1] != UINT64_MAX && !visit(ctx, entry[0]))
			return;
	}
}

/* An object without a dictionary of its own: the names are its class's. */
static uint64_t find_in_values(const struct python_layout *layout, struct mem *mem, uint64_t type, uint64_t values,
			       const char *name)
{
	struct search search = begin_search(layout, mem, name);

	for (uint64_t at = FIRST_CACHED_KEYS; !search.value && at < LAST_CACHED_KEYS; at += 8) {
		struct entries entries;
		uint64_t keys;

		if (read_u64(mem, type + at, &keys) && keys && keys % 8 == 0 &&
		    find_entries(layout, mem, keys, skip_sizes(layout, values), &entries) && entries.stride == 16 && entries.len <= 64)
			visit_entries(mem, &entries, compare_key, &search);
	}
	return search.value;
}

/* Where an object has its values, or its dictionary; 0: not. */
static void find_attributes(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t type,
			    uint64_t *values, uint64_t *dict)
{
	uint64_t offset, flags, size;
	unsigned minor = python_minor(layout);
	uint8_t head[8];

	*values = *dict = 0;
	if (minor < 11) {
		if (read_u64(mem, type + TYPE_DICT_OFFSET, &offset) && offset && offset < 1 << 16)
			read_u64(mem, object + offset, dict);
		return;
	}
	if (minor == 11) {
		if (!read_u64(mem, object - 32, values) || !*values)
			read_u64(mem, object - 24, dict);
		return;
	}
	read_u64(mem, object - 24, dict);
	if (minor == 12 && *dict & 1) {
		*values = *dict + 1;
		*dict = 0;
	}
	if (minor > 12 && read_u64(mem, type + TYPE_FLAGS, &flags) && flags & TYPE_INLINE_VALUES &&
	    read_u64(mem, type + TYPE_BASIC_SIZE, &size) && size < 1 << 16 &&
	    mem_read_exact(mem, object + size, head, sizeof(head)) && head[3])
		*values = object + size;
}

uint64_t python_attribute(const struct python_layout *layout, struct mem *mem, uint64_t object, const char *name)
{
	uint64_t type, values, dict;

	if (!read_u64(mem, object + OBJECT_TYPE, &type))
		return 0;
	find_attributes(layout, mem, object, type, &values, &dict);
	if (values)
		return find_in_values(layout, mem, type, values, name);
	return dict ? python_dict_get(layout, mem, dict, name) : 0;
}
