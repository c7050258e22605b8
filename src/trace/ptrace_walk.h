/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TRACE_PTRACE_WALK_H
#define STAKEOUT_TRACE_PTRACE_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/mem.h"
#include "model/stack.h"
#include "target/target.h"

/* --ptrace: stacks walked while the process is held, by tid, until they can be laid beside the snapshot's threads. */
struct ptrace_walk {
	struct target *target;
	struct modules_options files;
	uint32_t depth;
	struct budget budget; /* of walking */
	struct u64map by_tid; /* to position in stacks */
	VEC(struct raw_stack) stacks;
};

void ptrace_walk_deinit(struct ptrace_walk *walk);

/* For struct capture_options: `arg` is a struct ptrace_walk. */
int ptrace_walk_begin(void *arg, struct snapshot *snap, struct err *err);
void ptrace_walk_thread(void *arg, struct snapshot *snap, pid_t tid, const struct user_regs *regs, struct mem *peek);

/* Hands the stack of a thread over; false when there is none. */
bool ptrace_walk_take(struct ptrace_walk *walk, pid_t tid, struct raw_stack *out);

#endif
