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

/* Whether the process may be a Go program: its heap is at an address that the runtime prefers. */
bool go_copies_are_likely(const struct arch *arch, const struct maps *maps);

/* Reads it through `mem`, which keeps it. The thread may be held meanwhile: nothing is allocated, and no file opened. */
void go_copies_read(const struct arch *arch, const struct maps *maps, const struct user_regs *regs, struct mem *mem);

#endif
