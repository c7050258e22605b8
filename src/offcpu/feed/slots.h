/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_SLOTS_H
#define STAKEOUT_OFFCPU_FEED_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* Which places of an array are free, in runs. */
struct slots {
	VEC(struct slot_run) free; /* by rising number, never adjacent */
};

struct slot_run {
	uint32_t first;
	uint32_t count;
};

/* All of them are free. False when memory is exhausted. */
bool slots_init(struct slots *slots, uint32_t count);
void slots_deinit(struct slots *slots);

/* The lowest free run of `count` places; false when none is that long. */
bool slots_take(struct slots *slots, uint32_t count, uint32_t *first);

/* Gives back what was taken, or a part of it. False when memory is exhausted: it stays taken. */
bool slots_give(struct slots *slots, uint32_t first, uint32_t count);

#endif
