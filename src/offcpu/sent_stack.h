/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SENT_STACK_H
#define STAKEOUT_OFFCPU_SENT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/offcpu_record.h"
#include "model/stack.h"

/* A stack as BPF sends it, in a record of kind OFFCPU_STACK, with its frames in the terms of the model. */
struct sent_stack {
	const struct offcpu_stack *head; /* these two are in the record */
	const uint64_t *kernel;
	struct raw_frame user[OFFCPU_USER_FRAMES];
	struct runtime_frame runtime[OFFCPU_RUNTIME_FRAMES]; /* innermost first */
	uint32_t nruntime;
};

/* False: the record is cut short, or says what cannot be. */
bool sent_stack_read(const void *record, size_t len, struct sent_stack *out);

#endif
