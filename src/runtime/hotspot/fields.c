/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "runtime/hotspot/method.h"
#include "runtime/hotspot/symbol.h"

enum {
	ARRAY_DATA = 4, /* behind the length of an Array<> */
	MAX_ARRAY = 64 << 10,
	MAX_FIELDS = 1024,
	MAX_OFFSET = 1 << 16,
	SHORTS = 6,       /* of a field in the old form: flags, name, signature, value, and two of its offset, */
	OFFSET_SHIFT = 2, /* whose lowest bits are a tag */
	ACC_STATIC = 0x8,
	/* what a field of the stream has besides, by its flags */
	HAS_VALUE = 1 << 0,
	IS_INJECTED = 1 << 1,
	HAS_GENERIC = 1 << 2,
	HAS_GROUP = 1 << 4,
};

struct record {
	uint32_t name;
	uint32_t signature;
	uint32_t offset;
	bool is_static;
};

struct search {
	const struct layout *layout;
	struct pages *pages;
	uint64_t pool;
	uint64_t pool_len;
	struct java_field *fields;
	size_t n;
	uint32_t first;
};

/* The bytes of an Array<u1> or Array<u2>; *len is how many elements it has. */
static uint8_t *read_array(struct pages *pages, uint64_t array, unsigned size, uint32_t *len)
{
	uint8_t head[ARRAY_DATA], *bytes;

	if (!array || !pages_read(pages, array, head, sizeof(head)))
		return NULL;
	*len = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
	if (*len > MAX_ARRAY / size)
		return NULL;
	bytes = malloc(*len * size + 1);
	if (bytes && !pages_read(pages, array + ARRAY_DATA, bytes, *len * size)) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* False: its name is not known. */
static bool compare(struct search *s, const struct record *record)
{
	struct symbol_text name, signature;

	if (record->name >= s->pool_len || record->signature >= s->pool_len || record->offset > MAX_OFFSET)
		return false;
	if (!record->is_static && record->offset < s->first)
		s->first = record->offset;
	if (record->is_static)
		return true;
	if (!symbol_read_constant(s->layout, s->pages, s->pool, record->name, &name) ||
	    !symbol_read_constant(s->layout, s->pages, s->pool, record->signature, &signature))
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->fields[i].name, name.bytes) == 0) {
			s->fields[i].offset = record->offset;
			s->fields[i].type = signature.bytes[0];
		}
	return true;
}

static uint32_t short_at(const uint8_t *bytes, size_t i)
{
	return (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
}

/* `n` are the class's own; what the virtual machine has added comes behind these, and then something else. */
static bool search_array(struct search *s, uint64_t array, uint64_t n)
{
	uint32_t len = 0;
	_cleanup_free_ uint8_t *bytes = read_array(s->pages, array, 2, &len);
	bool ok = bytes;

	for (uint32_t i = 0; bytes && i + SHORTS <= len && i < SHORTS * n; i += SHORTS) {
		uint32_t offset = (short_at(bytes, i + 4) | short_at(bytes, i + 5) << 16) >> OFFSET_SHIFT;
		struct record record = {
			.name = short_at(bytes, i + 1),
			.signature = short_at(bytes, i + 2),
			.offset = offset,
			.is_static = short_at(bytes, i) & ACC_STATIC,
		};

		ok = compare(s, &record) && ok;
	}
	return ok;
}

static bool search_stream(struct search *s, uint64_t array)
{
	uint32_t len = 0, n;
	_cleanup_free_ uint8_t *bytes = read_array(s->pages, array, 1, &len);
	struct cursor c = cursor_init(bytes, bytes ? len : 0);
	bool ok = bytes;

	n = unsigned5_read(&c, true);
	unsigned5_read(&c, true); /* how many the virtual machine has added: they come last */
	if (n > MAX_FIELDS)
		return false;
	for (uint32_t i = 0; bytes && i < n && !c.bad; i++) {
		struct record record;
		uint32_t flags;

		record.name = unsigned5_read(&c, true);
		record.signature = unsigned5_read(&c, true);
		record.offset = unsigned5_read(&c, true);
		record.is_static = unsigned5_read(&c, true) & ACC_STATIC;
		flags = unsigned5_read(&c, true);
		if (flags & HAS_VALUE)
			unsigned5_read(&c, true);
		if (flags & HAS_GENERIC)
			unsigned5_read(&c, true);
		if (flags & HAS_GROUP)
			unsigned5_read(&c, true);
		if (!(flags & IS_INJECTED))
			ok = !c.bad && compare(s, &record) && ok;
	}
	return ok && !c.bad;
}

bool fields_find(const struct layout *layout, struct pages *pages, uint64_t class, struct java_field *fields, size_t n,
		 uint32_t *first)
{
	struct search s = {.layout = layout, .pages = pages, .fields = fields, .n = n, .first = UINT32_MAX};
	bool is_stream = layout_has(layout, HS_KLASS_FIELD_STREAM);
	uint64_t array, count = 0;

	for (size_t i = 0; i < n; i++)
		fields[i].type = 0;
	if (!layout_read(layout, pages, class, HS_KLASS_CONSTANTS, &s.pool) ||
	    !layout_read(layout, pages, s.pool, HS_POOL_LENGTH, &s.pool_len) ||
	    !layout_read(layout, pages, class, is_stream ? HS_KLASS_FIELD_STREAM : HS_KLASS_FIELDS, &array))
		return false;
	if (!is_stream && !layout_read(layout, pages, class, HS_KLASS_FIELD_COUNT, &count))
		return false;
	if (is_stream ? !search_stream(&s, array) : !search_array(&s, array, count & 0xffff))
		return false;
	*first = s.first;
	return true;
}
