/* SPDX-License-Identifier: MIT */
#include "runtime/v8/heap.h"

#include <endian.h>
#include <string.h>

#include "base/utf8.h"

enum {
	TAG = 1,
	UNCACHED = 0x10, /* of an external string's type: it does not keep where its characters are */
	MAX_DEPTH = 16,  /* of strings that consist of others */
	MAX_PARTS = 64,
	CHUNK = 256,     /* characters that are read at once */
};

bool heap_read_at(const struct heap *heap, uint64_t object, uint64_t offset, uint64_t *out)
{
	return heap_is_object(object) && pages_read_word(heap->pages, object - TAG + offset, out);
}

bool heap_read(const struct heap *heap, uint64_t object, enum v8_fact field, uint64_t *out)
{
	return heap_read_at(heap, object, heap->layout->facts[field], out);
}

bool heap_type(const struct heap *heap, uint64_t value, uint16_t *out)
{
	uint64_t map;
	uint16_t type;

	if (!heap_read_at(heap, value, 0, &map) || !heap_is_object(map) ||
	    !pages_read(heap->pages, map - TAG + heap->layout->facts[V8_MAP_TYPE], &type, sizeof(type)))
		return false;
	*out = le16toh(type);
	return true;
}

bool heap_is(const struct heap *heap, uint64_t value, enum v8_fact type)
{
	uint16_t found;

	return heap_type(heap, value, &found) && found == heap->layout->facts[type];
}

bool heap_is_function(const struct heap *heap, uint64_t value)
{
	const uint64_t *facts = heap->layout->facts;
	uint16_t type;

	return heap_type(heap, value, &type) && type >= facts[V8_TYPE_FUNCTION_FIRST] &&
	       type <= facts[V8_TYPE_FUNCTION_LAST];
}

bool heap_is_string(const struct heap *heap, uint64_t value)
{
	uint16_t type;

	return heap_type(heap, value, &type) && type < heap->layout->facts[V8_TYPE_NO_STRING];
}

bool heap_is_bytes(const struct heap *heap, uint64_t value)
{
	return heap_is(heap, value, V8_TYPE_BYTES) || heap_is(heap, value, V8_TYPE_TRUSTED_BYTES);
}

bool heap_length(const struct heap *heap, uint64_t array, uint32_t *out)
{
	uint64_t len;

	if (!heap_read(heap, array, V8_ARRAY_LENGTH, &len) || !heap_is_small(len) || heap_small(len) < 0)
		return false;
	*out = (uint32_t)heap_small(len);
	return true;
}

/* Strings */

/* What a string is made of: its own characters, or those of others. */
struct string {
	uint32_t len;
	bool has_text;
	struct heap_text text;
	uint64_t first;  /* else: the string that it begins with, or is part of, */
	uint64_t second; /* and what follows; 0: nothing */
	uint32_t skip;   /* so many characters of `first` */
};

static bool read_length(const struct heap *heap, uint64_t value, uint32_t *out)
{
	uint32_t len;

	if (!pages_read(heap->pages, value - TAG + heap->layout->facts[V8_STRING_LENGTH], &len, sizeof(len)))
		return false;
	*out = le32toh(len);
	return *out <= INT32_MAX;
}

static bool read_sequential(const struct heap *heap, uint64_t value, bool one_byte, struct string *out)
{
	enum v8_fact chars = one_byte ? V8_SEQ_ONE_BYTE_CHARS : V8_SEQ_TWO_BYTE_CHARS;

	out->text.address = value - TAG + heap->layout->facts[chars];
	out->has_text = true;
	return true;
}

/* Behind the object that owns the characters is where they are, unless there was no room for that. */
static bool read_external(const struct heap *heap, uint64_t value, uint16_t type, struct string *out)
{
	out->has_text = true;
	return !(type & UNCACHED) &&
	       heap_read_at(heap, value, heap->layout->facts[V8_EXTERNAL_RESOURCE] + sizeof(uint64_t), &out->text.address);
}

static bool read_sliced(const struct heap *heap, uint64_t value, struct string *out)
{
	uint64_t offset;

	if (!heap_read(heap, value, V8_SLICED_PARENT, &out->first) || !heap_read(heap, value, V8_SLICED_OFFSET, &offset) ||
	    !heap_is_small(offset) || heap_small(offset) < 0)
		return false;
	out->skip = (uint32_t)heap_small(offset);
	return true;
}

static bool read_string(const struct heap *heap, uint64_t value, struct string *out)
{
	const uint64_t *facts = heap->layout->facts;
	uint64_t representation;
	uint16_t type;
	bool one_byte;

	*out = (struct string){0};
	if (!heap_type(heap, value, &type) || type >= facts[V8_TYPE_NO_STRING] || !read_length(heap, value, &out->len))
		return false;
	representation = type & facts[V8_STRING_REPRESENTATION];
	one_byte = (type & facts[V8_STRING_ENCODING]) == facts[V8_TAG_ONE_BYTE];
	out->text = (struct heap_text){.len = out->len, .two_bytes = !one_byte};
	if (representation == 0)
		return read_sequential(heap, value, one_byte, out);
	if (representation == facts[V8_TAG_EXTERNAL])
		return read_external(heap, value, type, out);
	if (representation == facts[V8_TAG_SLICED])
		return read_sliced(heap, value, out);
	if (representation == facts[V8_TAG_THIN])
		return heap_read(heap, value, V8_THIN_ACTUAL, &out->first);
	return representation == facts[V8_TAG_CONS] && heap_read(heap, value, V8_CONS_FIRST, &out->first) &&
	       heap_read(heap, value, V8_CONS_SECOND, &out->second);
}

/* A string that was made flat keeps its form, with nothing as its second part. */
static bool is_empty(const struct heap *heap, uint64_t value)
{
	struct string string;

	return read_string(heap, value, &string) && !string.len;
}

bool heap_flat_text(const struct heap *heap, uint64_t value, struct heap_text *out)
{
	uint32_t skip = 0, len = 0;
	struct string string;

	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		if (!read_string(heap, value, &string))
			return false;
		if (!depth)
			len = string.len;
		if (skip > string.len || len > string.len - skip)
			return false;
		if (string.has_text) {
			*out = string.text;
			out->address += (uint64_t)skip << string.text.two_bytes;
			out->len = len;
			return true;
		}
		if (string.second && !is_empty(heap, string.second))
			return false;
		if (string.skip > INT32_MAX - skip)
			return false;
		skip += string.skip;
		value = string.first;
	}
	return false;
}

/* UTF-8 in the making. */
struct utf8 {
	char *bytes;
	size_t len;
	uint16_t high; /* the first half of a character of two; 0: none */
};

/* False when it is full. */
static bool put_character(struct utf8 *out, uint32_t c)
{
	char bytes[UTF8_MAX];
	size_t n = utf8_put(bytes, c);

	if (n > HEAP_TEXT - out->len)
		return false;
	memcpy(out->bytes + out->len, bytes, n);
	out->len += n;
	return true;
}

/* Half a character, and one that would end the text, become the mark of what cannot be shown. */
static bool put_unit(struct utf8 *out, uint16_t unit)
{
	uint16_t high = out->high;

	out->high = 0;
	if (high && unit >= 0xdc00 && unit < 0xe000)
		return put_character(out, 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (unit - 0xdc00));
	if (high && !put_character(out, UTF8_REPLACEMENT))
		return false;
	if (unit >= 0xd800 && unit < 0xdc00) {
		out->high = unit;
		return true;
	}
	return put_character(out, !unit || (unit >= 0xdc00 && unit < 0xe000) ? UTF8_REPLACEMENT : unit);
}

/* False: it cannot be read. What does not fit is left out. */
static bool put_text(const struct heap *heap, const struct heap_text *text, struct utf8 *out)
{
	uint32_t want = text->len < HEAP_TEXT ? text->len : HEAP_TEXT;

	for (uint32_t done = 0; done < want;) {
		uint32_t part = want - done < CHUNK ? want - done : CHUNK;
		uint8_t bytes[2 * CHUNK];

		if (!pages_read(heap->pages, text->address + ((uint64_t)done << text->two_bytes), bytes,
				(size_t)part << text->two_bytes))
			return false;
		for (uint32_t i = 0; i < part; i++)
			if (!put_unit(out, text->two_bytes ? (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8) : bytes[i]))
				return true;
		done += part;
	}
	return true;
}

/* Parts that are still to be put, the next one last. */
struct parts {
	uint64_t data[MAX_DEPTH];
	size_t len;
};

static bool put_part(const struct heap *heap, uint64_t value, struct parts *parts, struct utf8 *out)
{
	struct heap_text text;
	struct string string;

	if (heap_flat_text(heap, value, &text))
		return put_text(heap, &text, out);
	if (!read_string(heap, value, &string) || string.has_text || string.skip || parts->len + 2 > MAX_DEPTH)
		return false;
	if (string.second)
		parts->data[parts->len++] = string.second;
	parts->data[parts->len++] = string.first;
	return true;
}

bool heap_string(const struct heap *heap, uint64_t value, char bytes[HEAP_TEXT + 1])
{
	struct parts parts = {.data = {value}, .len = 1};
	struct utf8 out = {.bytes = bytes};

	for (int i = 0; parts.len; i++)
		if (i == MAX_PARTS || !put_part(heap, parts.data[--parts.len], &parts, &out))
			return false;
	if (out.high)
		put_character(&out, UTF8_REPLACEMENT);
	bytes[out.len] = '\0';
	return true;
}
