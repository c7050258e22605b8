/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_UNWIND_H
#define STAKEOUT_UNWIND_UNWIND_H

#include <stdint.h>

#include "base/budget.h"
#include "target/modules.h"
#include "model/mem.h"
#include "model/snapshot.h"
#include "model/stack.h"
#include "unwind/stepper.h"

enum { UNWIND_DEFAULT_DEPTH = 65536 };

/*
 * What all walks of one process may cost together: a few seconds. No normally compiled program comes near it. When a
 * program made to keep us busy, by its unwind information or its stacks, uses it up, stacks end with a reason.
 */
enum { UNWIND_BUDGET = 1 << 28 };

struct unwind_options {
	uint32_t depth;	  /* most frames; 0 means UNWIND_DEFAULT_DEPTH */
	struct mem *live; /* tried for what the snapshot's copies do not hold; NULL: nothing else is read */
	struct budget *budget; /* of the process; NULL: UNWIND_BUDGET for each walk */
	const struct stepper *steppers; /* of the runtimes that the process has */
	size_t nsteppers;
};

/*
 * Walks the user stack of one thread from its registers. Never fails: where it cannot go on, the stack ends with a
 * reason. `out` is initialised here; free it with raw_stack_deinit().
 */
void unwind_thread(const struct snapshot *snap, struct modules *modules, const struct snap_thread *thread,
		   const struct unwind_options *options, struct raw_stack *out);

/* The same from given registers, reading all memory through `mem` (--ptrace, and tests), and not through options->live. */
void unwind_regs(const struct snapshot *snap, struct modules *modules, const struct regs *regs, struct mem *mem,
		 const struct unwind_options *options, struct raw_stack *out);

#endif
