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

/* Walks the stacks that have a copy; those that still do not come to an end have at least as many frames as before. */
void stack_copies_walk(const struct stack_copies *copies, struct tables *tables, struct waits *waits);

#endif
