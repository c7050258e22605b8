/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_ALTSTACK_H
#define STAKEOUT_CAPTURE_ALTSTACK_H

#include <stdbool.h>

#include "arch/arch.h"
#include "model/maps.h"
#include "model/snapshot.h"

/*
 * A signal handler may run on a stack of its own (sigaltstack); the frames below it are on the thread's ordinary
 * stack, in another mapping. The signal frame, at the base of the handler's stack, holds the stack pointer there, and
 * is known by its description of the alternate stack.
 *
 * True when the copied stack is the thread's alternate one and holds such a frame: `out` is what to copy of the
 * interrupted stack, `len` bytes at `start`, at most `limit`. Allocates nothing: it is used while threads are held.
 */
bool altstack_interrupted(const struct arch *arch, const struct maps *maps, const struct altstack *alt,
			  const struct mem_copy *stack, uint64_t limit, struct mem_copy *out);

#endif
