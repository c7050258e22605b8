/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_HEAP_H
#define STAKEOUT_RUNTIME_V8_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/pages.h"
#include "runtime/v8/layout.h"

struct line_index;

/*
 * Objects of V8's heap. A value is a word: a small integer in its upper half, or the address of an object plus 1, whose
 * first word is its map, which tells its type. Objects move: nothing is taken for what it should be without its type.
 */
struct heap {
	const struct v8_layout *layout;
	struct pages *pages;
	struct line_index *lines; /* what is known of sources; NULL: lines are counted anew each time */
};

enum { HEAP_TEXT = 1024 }; /* most bytes of a name; longer ones are cut */

static inline bool heap_is_object(uint64_t value)
{
	return (value & 3) == 1;
}

static inline bool heap_is_small(uint64_t value)
{
	return (value & UINT32_MAX) == 0;
}

static inline int32_t heap_small(uint64_t value)
{
	return (int32_t)(value >> 32);
}

/* False: it cannot be read, or not yet (pages.h). */
bool heap_read(const struct heap *heap, uint64_t object, enum v8_fact field, uint64_t *out);
bool heap_read_at(const struct heap *heap, uint64_t object, uint64_t offset, uint64_t *out);
bool heap_type(const struct heap *heap, uint64_t value, uint16_t *out);

/* True when it is known to be an object of that type. */
bool heap_is(const struct heap *heap, uint64_t value, enum v8_fact type);
bool heap_is_function(const struct heap *heap, uint64_t value);
bool heap_is_string(const struct heap *heap, uint64_t value);
bool heap_is_bytes(const struct heap *heap, uint64_t value);

/* Of an array of any kind: how many elements it has. False: it cannot be read, or that is none. */
bool heap_length(const struct heap *heap, uint64_t array, uint32_t *out);

/* The characters of a string that are in one piece. */
struct heap_text {
	uint64_t address;
	uint32_t len; /* in characters */
	bool two_bytes;
};

/* False: it is none, its characters are in several pieces or nowhere in memory, or it cannot be read. */
bool heap_flat_text(const struct heap *heap, uint64_t string, struct heap_text *out);

/* Any string, in UTF-8. */
bool heap_string(const struct heap *heap, uint64_t string, char out[HEAP_TEXT + 1]);

#endif
