/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_MADE_CODE_H
#define STAKEOUT_RUNTIME_MADE_CODE_H

#include "model/stack.h"

/*
 * Code made at run time that uses the frame pointer as an ordinary register, as HotSpot's does, leaves its caller's in it:
 * a step by frame pointer then jumps over any number of frames, and arrives at a true one all the same. Why frames may be
 * missing from a stack; NULL: every such step is through code that is known to keep frame pointers.
 */
const char *made_code_doubt(const struct stack *stack);

#endif
