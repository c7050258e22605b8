/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_BLOCKS_H
#define STAKEOUT_RUNTIME_PYTHON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/map.h"
#include "model/mem.h"
#include "runtime/python/chain.h"
#include "runtime/python/layout.h"
#include "runtime/python/releases.h"

/*
 * The blocks of `with` statements that a thread is in. A threading.Lock does not record who has it; but from when the thread has it in
 * `with lock:` to the end of the block the interpreter keeps, among the values of the frame, what will let go of it. All is read from
 * memory as it is now: it is true of a thread that has slept since its frames were read.
 */

enum { PYTHON_MAX_BLOCK_LOCKS = 64 };

struct python_blocks {
	const struct python_layout *layout;
	struct mem *mem;
	struct arena *arena; /* its own */
	struct python_releases releases;
	struct u64map functions; /* by code object */
	struct budget budget;	 /* if it refused something, there was too much to look at: who else is in such a block is not known */
};

/* False when memory is exhausted. deinit() is called all the same, and what it points to stays where it is until then. */
bool python_blocks_init(struct python_blocks *blocks, const struct python_layout *layout, struct mem *mem);
void python_blocks_deinit(struct python_blocks *blocks);

/*
 * Which of these locks the thread with these frames has. Those are left out that it may have let go of already: a function that it is in,
 * there or further in, may do that (releases.h).
 */
size_t python_blocks_find(struct python_blocks *blocks, const struct python_chain *chain, const struct u64map *locks,
			  uint64_t out[PYTHON_MAX_BLOCK_LOCKS]);

#endif
