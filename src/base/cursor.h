/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_CURSOR_H
#define STAKEOUT_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The one reader of foreign bytes. A read past the end returns 0 (or NULL), sets `bad` and consumes everything,
 * so a parser may read a whole record and test `bad` once. Bytes are little-endian unless big_endian is set.
 */
struct cursor {
	const uint8_t *start;
	const uint8_t *p;
	const uint8_t *end;
	bool big_endian;
	bool bad;
};

struct cursor cursor_init(const void *data, size_t len);

/* A cursor over the next `len` bytes, which `c` skips; an empty, bad cursor when they are not there. */
struct cursor cursor_take(struct cursor *c, uint64_t len);

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline size_t cursor_offset(const struct cursor *c)
{
	return (size_t)(c->p - c->start);
}

bool cursor_seek(struct cursor *c, uint64_t offset); /* from the start */
bool cursor_bytes(struct cursor *c, void *out, size_t len);

/* Marks the cursor bad and consumes everything. */
static inline void cursor_fail(struct cursor *c)
{
	c->bad = true;
	c->p = c->end;
}

/*
 * The small reads are here, to be inlined: a debug file is some hundred million of them. A bad cursor has nothing left,
 * so that one comparison covers both.
 */
static inline uint8_t cursor_u8(struct cursor *c)
{
	if (c->p >= c->end) {
		cursor_fail(c);
		return 0;
	}
	return *c->p++;
}

static inline bool cursor_skip(struct cursor *c, uint64_t len)
{
	if (len > cursor_left(c)) {
		cursor_fail(c);
		return false;
	}
	c->p += len;
	return !c->bad;
}

#define CURSOR_FIXED(name, type, swap)                                                                                 \
	static inline type name(struct cursor *c)                                                                      \
	{                                                                                                              \
		type value;                                                                                            \
                                                                                                                       \
		if (cursor_left(c) < sizeof(value)) {                                                                  \
			cursor_fail(c);                                                                                \
			return 0;                                                                                      \
		}                                                                                                      \
		__builtin_memcpy(&value, c->p, sizeof(value));                                                         \
		c->p += sizeof(value);                                                                                 \
		return c->big_endian == CURSOR_BIG_ENDIAN_HOST ? value : swap(value);                                  \
	}

#define CURSOR_BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

CURSOR_FIXED(cursor_u16, uint16_t, __builtin_bswap16)
CURSOR_FIXED(cursor_u32, uint32_t, __builtin_bswap32)
CURSOR_FIXED(cursor_u64, uint64_t, __builtin_bswap64)

#undef CURSOR_FIXED

uint64_t cursor_uleb_long(struct cursor *c); /* more than one byte */

static inline uint64_t cursor_uleb(struct cursor *c)
{
	return c->p < c->end && *c->p < 0x80 ? *c->p++ : cursor_uleb_long(c);
}

uint64_t cursor_uint(struct cursor *c, unsigned size); /* up to 8 bytes */
int64_t cursor_sint(struct cursor *c, unsigned size);  /* the same, sign-extended */
int64_t cursor_sleb(struct cursor *c);

/* A NUL-terminated string inside the buffer, or NULL when the NUL is missing. */
const char *cursor_cstr(struct cursor *c);

#endif
