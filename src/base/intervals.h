/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_INTERVALS_H
#define STAKEOUT_BASE_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * Address ranges that may overlap and nest, made into pieces that do not: a lookup is then one binary search, however
 * absurd the ranges are.
 */
struct interval {
	uint64_t start;
	uint64_t end;
	uint32_t id;   /* of the owner's choice, but not PIECE_NONE */
	uint32_t rank; /* of two that overlap the higher one is visible; of equals, the one added later */
};

struct intervals {
	VEC_FIELDS(struct interval);
};

/* From `start` to the start of the next piece; the last one has PIECE_NONE. */
struct piece {
	uint64_t start;
	uint32_t id;
};

#define PIECE_NONE UINT32_MAX

struct pieces {
	VEC_FIELDS(struct piece);
};

/* Empty ranges are left out. False when memory is exhausted. */
bool intervals_add(struct intervals *intervals, uint64_t start, uint64_t end, uint32_t id, uint32_t rank);

/* By start; those with the same start stay in the order in which they were added. False when memory is exhausted. */
bool intervals_sort(struct intervals *intervals);

/* Replaces `out`; the intervals are sorted. False when memory is exhausted. */
bool intervals_flatten(struct intervals *intervals, struct pieces *out);

/* The id at an address, or PIECE_NONE. */
uint32_t pieces_find(const struct pieces *pieces, uint64_t address);

#endif
