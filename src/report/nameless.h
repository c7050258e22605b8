/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_NAMELESS_H
#define STAKEOUT_REPORT_NAMELESS_H

#include <stdbool.h>

#include "model/stack.h"

/* Whether there is code of a just-in-time compiler in the stack, which is in no file, and has no names. NULL is legal. */
bool nameless_code_is_in(const struct stack *stack);

#endif
