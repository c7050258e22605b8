/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_POSITION_H
#define STAKEOUT_RUNTIME_V8_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/v8/heap.h"

/*
 * Positions are numbers of characters from the start of a script. A table of pairs tells which belongs to which bytecode:
 * how far both are from the pair before, as numbers of variable length.
 */

/* The position of the last pair at or before the bytecode at `offset`. False: there is none, or the table is damaged. */
bool position_find(struct cursor *table, int64_t offset, uint32_t *out);

/* The same for a BytecodeArray. -1 is the function's entry, before its first bytecode. */
bool position_of_bytecode(const struct heap *heap, uint64_t bytecode, int64_t offset, uint32_t *out);

/* Ends of lines, as JavaScript has them. */
struct line_count {
	uint32_t line;
	bool after_return; /* a carriage return, which ends a line together with a line feed that follows */
};

/* What was counted in a source: how many lines there are before each piece of it. */
struct counted_source {
	uint64_t sample; /* a hash of some of its characters: another source may get its address */
	uint32_t len;
	VEC(struct line_count) before;
};

/* Of sources whose lines are asked for again and again. */
struct line_index {
	VEC(struct counted_source) sources;
	struct u64map by_address; /* position in it + 1 */
	uint64_t pieces;          /* in all */
};

void line_index_deinit(struct line_index *index);

/* The line of a position, from 1 on. False: the source is too large or cannot be read. */
bool position_line(const struct heap *heap, uint64_t source, uint32_t position, uint32_t *out);

#endif
