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
 * Bytes of a file may change while they are read (filemap.h): the compiler must keep the value that was read, and not
 * read memory a second time.
 */
#define CURSOR_ONCE(value) __asm__("" : "+r"(value))

/*
 * The small reads are here, to be inlined: a debug file is some hundred million of them. A bad cursor has nothing left,
 * so that one comparison covers both.
 */
static inline uint8_t cursor_u8(struct cursor *c)
{
	uint8_t value;

	if (c->p >= c->end) {
		cursor_fail(c);
		return 0;
	}
	value = *c->p++;
	CURSOR_ONCE(value);
	return value;
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
		CURSOR_ONCE(value);                                                                                    \
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
	uint8_t first;

	if (c->p >= c->end)
		return cursor_uleb_long(c);
	first = *c->p;
	CURSOR_ONCE(first);
	if (first >= 0x80)
		return cursor_uleb_long(c);
	c->p++;
	return first;
}

uint64_t cursor_uint(struct cursor *c, unsigned size); /* up to 8 bytes */
int64_t cursor_sint(struct cursor *c, unsigned size);  /* the same, sign-extended */
int64_t cursor_sleb(struct cursor *c);

/*
 * A NUL-terminated string inside the buffer, or NULL when the NUL is missing. If the file changes, the NUL may be gone
 * the next time: then the string ends with the file at the latest.
 */
const char *cursor_cstr(struct cursor *c);

/* A copy of such a string, to be looked at more than once. False, and "", when it does not fit. */
bool cursor_string(struct cursor *c, char *out, size_t size);

#endif
