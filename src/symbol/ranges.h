/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_RANGES_H
#define STAKEOUT_SYMBOL_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* Address ranges, each with a number of the owner's choice, to be searched by address. They may overlap. */
struct range {
	uint64_t start;
	uint64_t end;
	uint32_t id;
};

struct ranges {
	VEC_FIELDS(struct range);
	uint64_t *reach; /* after sorting: the highest end among ranges 0…i */
};

/* Empty ranges are left out. False when memory is exhausted. */
bool ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t id);

/* To be called once, between the last addition and the first search. False when memory is exhausted. */
bool ranges_sort(struct ranges *ranges);

/* The range that contains the address; of several, the one that starts last. NULL when there is none. */
const struct range *ranges_find(const struct ranges *ranges, uint64_t address);

void ranges_deinit(struct ranges *ranges);

#endif
