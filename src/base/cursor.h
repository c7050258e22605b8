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
bool cursor_skip(struct cursor *c, uint64_t len);
bool cursor_bytes(struct cursor *c, void *out, size_t len);

uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
uint64_t cursor_uint(struct cursor *c, unsigned size); /* 1, 2, 4 or 8 bytes */
int64_t cursor_sint(struct cursor *c, unsigned size);  /* the same, sign-extended */
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

/* A NUL-terminated string inside the buffer, or NULL when the NUL is missing. */
const char *cursor_cstr(struct cursor *c);

#endif
