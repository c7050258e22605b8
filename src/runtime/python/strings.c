/* SPDX-License-Identifier: MIT */
#include "runtime/python/strings.h"

#include <string.h>

#include "base/utf8.h"

/* PyVarObject, PyBytesObject, PyASCIIObject: the same in all versions */
enum {
	OBJECT_SIZE = 16, /* ob_size of what has one; the length of a str */
	BYTES_DATA = 32,
	STR_STATE = 32, /* bits: 0 and 1 interned, 2 to 4 kind, 5 compact, 6 ASCII */
};

struct text {
	uint64_t start;
	uint64_t length; /* characters */
	unsigned kind; /* bytes each */
};

/* The characters follow the head, but for a class of the program that is a str: then a pointer to them does. */
static bool find_text(const struct python_layout *layout, struct mem *mem, uint64_t object, struct text *out)
{
	uint64_t head[5];
	uint32_t state;
	int64_t length;

	if (!mem_read_exact(mem, object, head, sizeof(head)))
		return false;
	length = (int64_t)head[OBJECT_SIZE / 8];
	state = (uint32_t)head[STR_STATE / 8];
	out->kind = state >> 2 & 7;
	if (length < 0 || (out->kind != 1 && out->kind != 2 && out->kind != 4))
		return false;
	out->length = (uint64_t)length;
	if (!(state & 1 << 5))
		return mem_read_exact(mem, object + layout->at[PY_STR_OTHER], &out->start, sizeof(out->start));
	out->start = object + layout->at[state & 1 << 6 ? PY_STR_ASCII : PY_STR_OTHER];
	return true;
}

bool python_characters(const struct python_layout *layout, struct mem *mem, uint64_t object, uint32_t *out, size_t max,
		       uint64_t *length)
{
	uint8_t bytes[PYTHON_MAX_STRING * 4];
	struct text text;
	size_t n;

	if (!find_text(layout, mem, object, &text))
		return false;
	*length = text.length;
	n = text.length < max ? (size_t)text.length : max;
	n = n < PYTHON_MAX_STRING ? n : PYTHON_MAX_STRING;
	if (n && !mem_read_exact(mem, text.start, bytes, n * text.kind))
		return false;
	for (size_t i = 0; i < n; i++) {
		out[i] = 0;
		memcpy(&out[i], bytes + i * text.kind, text.kind);
	}
	return true;
}

const char *python_string(const struct python_layout *layout, struct mem *mem, uint64_t object, struct arena *arena)
{
	uint32_t characters[PYTHON_MAX_STRING];
	char utf8[PYTHON_MAX_STRING * 4];
	uint64_t length;
	size_t len = 0;

	if (!python_characters(layout, mem, object, characters, PYTHON_MAX_STRING, &length))
		return NULL;
	for (size_t i = 0; i < length && i < PYTHON_MAX_STRING; i++)
		len += utf8_put(utf8 + len, characters[i] ? characters[i] : ' '); /* a NUL would end it */
	return arena_intern_n(arena, utf8, len);
}

bool python_bytes(struct mem *mem, uint64_t object, struct arena *arena, const uint8_t **data, size_t *len)
{
	uint64_t size;
	uint8_t *copy;

	if (!mem_read_exact(mem, object + OBJECT_SIZE, &size, sizeof(size)) || size > PYTHON_MAX_BYTES)
		return false;
	copy = arena_alloc(arena, size + 1);
	if (!copy || (size && !mem_read_exact(mem, object + BYTES_DATA, copy, size)))
		return false;
	*data = copy;
	*len = size;
	return true;
}
