/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_STRINGS_H
#define STAKEOUT_RUNTIME_PYTHON_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/mem.h"
#include "runtime/python/layout.h"

enum {
	PYTHON_MAX_STRING = 1024,      /* characters; the rest is cut */
	PYTHON_MAX_BYTES = 64 << 10,   /* of a bytes object */
};

/* The text of a str object as UTF-8, in the arena. NULL: it is none, cannot be read, or memory is exhausted. */
const char *python_string(const struct python_layout *layout, struct mem *mem, uint64_t object, struct arena *arena);

/* At most `max`, and PYTHON_MAX_STRING, characters of one; *length is how many it has. False: as above. */
bool python_characters(const struct python_layout *layout, struct mem *mem, uint64_t object, uint32_t *out, size_t max,
		       uint64_t *length);

/* The contents of a bytes object, in the arena. False: as above, or it is longer than PYTHON_MAX_BYTES. */
bool python_bytes(struct mem *mem, uint64_t object, struct arena *arena, const uint8_t **data, size_t *len);

#endif
