/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_BLOCKS_H
#define STAKEOUT_RUNTIME_PYTHON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/mem.h"
#include "runtime/python/chain.h"
#include "runtime/python/layout.h"

/*
 * The blocks of `with` statements that a thread is in. A threading.Lock does not record who has it; but from when the thread has it in
 * `with lock:` to the end of the block the interpreter keeps, among the values of the frame, what will let go of it. All is read from
 * memory as it is now: it is true of a thread that has slept since its frames were read.
 */

enum { PYTHON_MAX_BLOCK_LOCKS = 64 };

struct python_blocks {
	const struct python_layout *layout;
	struct mem *mem;
	struct arena *arena;
	struct u64map functions; /* by code object */
};

void python_blocks_deinit(struct python_blocks *blocks);

/*
 * Which of these locks the thread with these frames has. Those are left out that it may have let go of already: a function that it is in,
 * there or further in, speaks of releasing something, as Condition.wait() does.
 */
size_t python_blocks_find(struct python_blocks *blocks, const struct python_chain *chain, const struct u64map *locks,
			  uint64_t out[PYTHON_MAX_BLOCK_LOCKS]);

/* Whether the function lets go of a lock to take it again later: Condition.wait() waits for a lock that is nobody else's. */
bool python_blocks_is_condition(struct python_blocks *blocks, uint64_t code);

#endif
