/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_SNAPFILE_PARTS_H
#define STAKEOUT_MODEL_SNAPFILE_PARTS_H

#include "base/cursor.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/snapshot.h"

/* What the sections of a saved snapshot are made of: for model/snapfile*.c only. */

/* The bytes of a section or a file, growing. */
struct bytes {
	VEC_FIELDS(uint8_t);
	bool failed; /* memory was exhausted, and what was put since is missing */
};

void cleanup_bytes(struct bytes *b);
void put_bytes(struct bytes *b, const void *data, size_t len);
void put_uint(struct bytes *b, uint64_t value, unsigned size);
void put_u8(struct bytes *b, uint8_t value);
void put_u32(struct bytes *b, uint32_t value);
void put_u64(struct bytes *b, uint64_t value);
void put_string(struct bytes *b, const char *s); /* NULL is legal; too long for the reader: it is cut */

/* The caller tests the cursor for a record that is too short. */
int snapfile_no_memory(struct err *err);
int get_string(struct cursor *c, struct snapshot *snap, struct err *err, const char **out);
int get_text(struct cursor *c, struct snapshot *snap, struct err *err, const char **out); /* "" in place of NULL */

#endif
