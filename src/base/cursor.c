/* SPDX-License-Identifier: MIT */
#include "base/cursor.h"

#include <string.h>

enum { MAX_LEB_BITS = 7 * 32 };

struct cursor cursor_init(const void *data, size_t len)
{
	/* An absent section is NULL, and C forbids adding even 0 to that: it reads like an empty one. */
	const uint8_t *bytes = data ? data : (const uint8_t *)"";
	struct cursor c = {.start = bytes, .p = bytes, .end = data ? bytes + len : bytes};

	return c;
}

struct cursor cursor_take(struct cursor *c, uint64_t len)
{
	struct cursor part = {.start = c->p, .p = c->p, .big_endian = c->big_endian};

	if (c->bad || len > cursor_left(c)) {
		cursor_fail(c);
		part.start = part.p = part.end = c->end;
		part.bad = true;
		return part;
	}
	c->p += len;
	part.end = c->p;
	return part;
}

bool cursor_seek(struct cursor *c, uint64_t offset)
{
	if (c->bad || offset > (size_t)(c->end - c->start)) {
		cursor_fail(c);
		return false;
	}
	c->p = c->start + offset;
	return true;
}

bool cursor_bytes(struct cursor *c, void *out, size_t len)
{
	if (c->bad || len > cursor_left(c)) {
		cursor_fail(c);
		memset(out, 0, len);
		return false;
	}
	memcpy(out, c->p, len);
	c->p += len;
	return true;
}

uint64_t cursor_uint(struct cursor *c, unsigned size)
{
	uint64_t value = 0;

	if (c->bad || size > sizeof(value) || size > cursor_left(c)) {
		cursor_fail(c);
		return 0;
	}
	switch (size) {
	case 1:
		return cursor_u8(c);
	case 2:
		return cursor_u16(c);
	case 4:
		return cursor_u32(c);
	case 8:
		return cursor_u64(c);
	}
	for (unsigned i = 0; i < size; i++) {
		unsigned shift = 8 * (c->big_endian ? size - 1 - i : i);

		value |= (uint64_t)c->p[i] << shift;
	}
	c->p += size;
	return value;
}

int64_t cursor_sint(struct cursor *c, unsigned size)
{
	uint64_t value = cursor_uint(c, size);

	if (size > 0 && size < 8 && (value >> (8 * size - 1)) & 1)
		value |= ~UINT64_C(0) << (8 * size);
	return (int64_t)value;
}

/*
 * Bits past 64 are dropped. The encoding may be padded, but not without end: a number that takes megabytes would be read
 * again by everything that refers to it.
 */
static uint64_t read_leb(struct cursor *c, unsigned *bits, uint8_t *last)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (shift > MAX_LEB_BITS)
			cursor_fail(c);
	} while ((byte & 0x80) && !c->bad);
	*bits = shift;
	*last = byte;
	return c->bad ? 0 : value;
}

uint64_t cursor_uleb_long(struct cursor *c)
{
	unsigned bits;
	uint8_t last;

	return read_leb(c, &bits, &last);
}

int64_t cursor_sleb(struct cursor *c)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = read_leb(c, &bits, &last);

	if (!c->bad && (last & 0x40) && bits < 64)
		value |= ~UINT64_C(0) << bits;
	return (int64_t)value;
}

const char *cursor_cstr(struct cursor *c)
{
	const uint8_t *nul = c->p < c->end ? memchr(c->p, 0, cursor_left(c)) : NULL;
	const char *s = (const char *)c->p;

	if (!nul) {
		cursor_fail(c);
		return NULL;
	}
	c->p = nul + 1;
	return s;
}

bool cursor_string(struct cursor *c, char *out, size_t size)
{
	size_t len = cursor_left(c) < size ? cursor_left(c) : size;
	const char *nul;

	if (len)
		memcpy(out, c->p, len);
	nul = len ? memchr(out, 0, len) : NULL;
	if (!nul) {
		cursor_fail(c);
		if (size)
			out[0] = '\0';
		return false;
	}
	c->p += (size_t)(nul - out) + 1;
	return true;
}
