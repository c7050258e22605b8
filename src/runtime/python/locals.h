/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_LOCALS_H
#define STAKEOUT_RUNTIME_PYTHON_LOCALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/mem.h"
#include "model/stack.h"
#include "runtime/python/layout.h"

enum { PYTHON_MAX_LOCALS = 128 };

/* Where the variables of a frame are: read while the thread stands still, to be kept. */
void python_locals_touch(const struct python_layout *layout, struct mem *mem, uint64_t frame);

/*
 * The variables that have a value, with names of the code object. The slots are read from `own`, the thread's memory; all
 * else, which others may change meanwhile, from `mem`. False when memory is exhausted.
 */
bool python_locals_read(const struct python_layout *layout, struct mem *own, struct mem *mem, uint64_t frame, uint64_t code,
			struct arena *arena, const struct frame_local **out, uint32_t *n);

#endif
