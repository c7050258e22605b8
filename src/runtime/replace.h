/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_REPLACE_H
#define STAKEOUT_RUNTIME_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/stack.h"

/*
 * Puts n frames, innermost first, in the place of the named frames that came from the raw frames `first` to `last`, which
 * follow each other. keep: before these, which stay. The first of the new ones says how many it stands for, and all are of
 * the raw frame `first`. False when memory is exhausted.
 */
bool stack_replace(struct stack *stack, uint32_t first, uint32_t last, const struct frame *frames, size_t n, bool keep);

#endif
