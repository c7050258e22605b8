/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_BASELINE_H
#define STAKEOUT_RUNTIME_V8_BASELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/v8/code.h"

/*
 * Baseline code has the instructions of one bytecode after the other, and a table of how far those of each go. The bytecode
 * whose instructions end at `pc` or have it in them: where a call returns to belongs to the call; -1: those before all of
 * them. False: the table is not one of this bytecode, or cannot be read.
 */
bool v8_baseline_find(const struct heap *heap, const struct v8_code *code, uint64_t bytecode, uint64_t pc, int64_t *out);

#endif
