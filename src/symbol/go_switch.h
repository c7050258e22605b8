/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_GO_SWITCH_H
#define STAKEOUT_SYMBOL_GO_SWITCH_H

#include <stdbool.h>

#include "model/stack.h"

/*
 * Go's runtime does its own work, and calls C, on another stack than a goroutine's. The functions that switch to it have
 * unwind information as if they had not, which leads from their frames to whatever is left on the other stack. Only their
 * names tell; what was found behind them is no part of the stack.
 */

/* True when the function of the stack's last frame has switched stacks. */
bool go_switch_is_last(const struct stack *stack);

/*
 * Why the stack is not whole then: the goroutine that called is on another one. NULL: it is whole, since the thread has
 * left that goroutine for good.
 */
const char *go_switch_error(const struct stack *stack);

#endif
