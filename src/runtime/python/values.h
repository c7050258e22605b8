/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_VALUES_H
#define STAKEOUT_RUNTIME_PYTHON_VALUES_H

#include <stdint.h>

#include "base/arena.h"
#include "model/mem.h"
#include "runtime/python/layout.h"

/*
 * An object as a line of text, as repr() would show it, by reading its memory only: numbers, strings, bytes, None, truth
 * values; of containers the length and the first elements; of classes that are such their name and the same; of everything else the
 * type. Cut at PYTHON_VALUE_WIDTH
 * characters, and bounded in depth and in what is read. NULL: memory is exhausted.
 */
enum { PYTHON_VALUE_WIDTH = 96 };

const char *python_value(const struct python_layout *layout, struct mem *mem, uint64_t object, struct arena *arena);

/* Of a slot of a frame, which may be empty (NULL then), hold a number by itself since 3.14, or a cell with the value in it. */
const char *python_slot_value(const struct python_layout *layout, struct mem *mem, uint64_t slot, struct arena *arena);

/* An int that is not negative and has at most 64 bits. False: it is something else, or cannot be read. */
bool python_int(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t *out);

/* The items of a tuple: how many, at most `max`, were read. */
size_t python_tuple_items(const struct python_layout *layout, struct mem *mem, uint64_t tuple, uint64_t *items, size_t max);

#endif
