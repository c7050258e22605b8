/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_LIB_STACK_H
#define STAKEOUT_LIB_STACK_H

#include "model/stack.h"
#include "stakeout.h"

/* NULL: there are no frames. */
const struct stakeout_stack *stack_public(const struct stack *stack);

#endif
