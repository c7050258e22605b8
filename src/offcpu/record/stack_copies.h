/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_STACK_COPIES_H
#define STAKEOUT_OFFCPU_RECORD_STACK_COPIES_H

#include "base/map.h"
#include "base/vec.h"
#include "offcpu/feed/tables.h"
#include "offcpu/waits.h"

/*
 * Stacks that BPF could not walk to the end, as a file that they lead through had no table yet: it has sent their registers and
 * memory, and what was mapped (bpf/stack_copy.bpf.h). When the recording has ended the files are known, and they are walked
 * as in a snapshot; their processes may be gone by then.
 */
struct stack_copies {
	VEC(struct offcpu_copy *) all; /* as they were sent, checked */
	struct u64map by_number;       /* to index + 1 */
	size_t bytes;
};

void stack_copies_deinit(struct stack_copies *copies);

/* A record of kind OFFCPU_COPY. What cannot be kept is left out. */
void stack_copies_add(struct stack_copies *copies, const void *record, size_t len);

/*
 * Gives the frames that runtimes of that process told of a stack (told->runtime) their places among all its native frames. False:
 * they have none, and are left as they are.
 */
typedef bool (*stack_place_fn)(void *arg, uint32_t process, const struct raw_stack *native, struct raw_stack *told);

/*
 * Walks the stacks that have a copy; those that still do not come to an end have at least as many frames as before. A stack with
 * frames of runtimes stays as it is where these get no places; `place` may be NULL.
 */
void stack_copies_walk(const struct stack_copies *copies, struct tables *tables, struct waits *waits, stack_place_fn place, void *arg);

#endif
