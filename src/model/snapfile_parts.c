/* SPDX-License-Identifier: MIT */
#include "model/snapfile_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_STRING = 64 * 1024 };

#define NO_STRING UINT32_MAX

void cleanup_bytes(struct bytes *b)
{
	vec_deinit(b);
}

void put_bytes(struct bytes *b, const void *data, size_t len)
{
	if (b->failed || !vec_reserve(b, b->len + len)) {
		b->failed = true;
		return;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
}

void put_uint(struct bytes *b, uint64_t value, unsigned size)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < size; i++)
		raw[i] = (uint8_t)(value >> (8 * i));
	put_bytes(b, raw, size);
}

void put_u8(struct bytes *b, uint8_t value)
{
	put_uint(b, value, 1);
}

void put_u32(struct bytes *b, uint32_t value)
{
	put_uint(b, value, 4);
}

void put_u64(struct bytes *b, uint64_t value)
{
	put_uint(b, value, 8);
}

/* A string too long for the reader is cut: losing its end is better than losing the file. */
void put_string(struct bytes *b, const char *s)
{
	size_t len = s ? strnlen(s, MAX_STRING) : 0;

	put_u32(b, s ? (uint32_t)len : NO_STRING);
	put_bytes(b, s, len);
}

int snapfile_no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "memory is exhausted");
}

int get_string(struct cursor *c, struct snapshot *snap, struct err *err, const char **out)
{
	uint32_t len = cursor_u32(c);
	struct cursor text;

	*out = NULL;
	if (c->bad || len == NO_STRING)
		return 0;
	if (len > MAX_STRING)
		return err_set(err, EINVAL, "a string of %" PRIu32 " bytes", len);
	text = cursor_take(c, len);
	if (text.bad)
		return 0;
	*out = arena_intern_n(snap->arena, (const char *)text.p, len);
	return *out ? 0 : snapfile_no_memory(err);
}

/* A string that the rest of the program expects to be there. */
int get_text(struct cursor *c, struct snapshot *snap, struct err *err, const char **out)
{
	int ret = get_string(c, snap, err, out);

	if (!ret && !*out)
		*out = "";
	return ret;
}
