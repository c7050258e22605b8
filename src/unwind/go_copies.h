/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_GO_COPIES_H
#define STAKEOUT_UNWIND_GO_COPIES_H

#include <stdbool.h>

#include "arch/arch.h"
#include "model/maps.h"
#include "model/mem.h"

/*
 * What a walk will want of a thread of a Go program besides the stack that it is on: where the runtime noted its other
 * stack, and that stack (go_stack.h). It changes as soon as the thread runs on, so it is read with the thread's own stack.
 */

/* Where the heap of a Go program is: at an address that the runtime prefers, or since 1.26 at a random one. */
struct go_heap {
	uint64_t start;
	uint64_t mask; /* bits of an address that tell where it is in the heap */
};

/* Whether the process may be a Go program: it has mappings like those of the heap. */
bool go_copies_are_likely(const struct arch *arch, const struct maps *maps, struct go_heap *heap);

/* Reads it through `mem`, which keeps it. The thread may be held meanwhile: nothing is allocated, and no file opened. */
void go_copies_read(const struct arch *arch, const struct maps *maps, const struct go_heap *heap, const struct user_regs *regs, struct mem *mem);

#endif
