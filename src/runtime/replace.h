/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_REPLACE_H
#define STAKEOUT_RUNTIME_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/stack.h"

/* Puts what a runtime knows in the place of native frames of a stack, one place after the other from the innermost on. */
struct stack_merge {
	struct stack *stack;
	struct stack out;
	size_t at; /* the next frame of the stack */
	bool keep;
	bool ok; /* false: memory is exhausted */
};

/* keep: the native frames stay, behind what stands for them. */
struct stack_merge stack_merge_begin(struct stack *stack, bool keep);

/*
 * n frames, innermost first, for the named frames that came from the raw frames `first` to `last`. The first of the new ones
 * says how many it stands for, and all are of the raw frame `first`.
 */
void stack_merge_replace(struct stack_merge *merge, uint32_t first, uint32_t last, const struct frame *frames, size_t n);

bool stack_merge_end(struct stack_merge *merge); /* false: memory was exhausted, and the stack is as it was */

#endif
