/* SPDX-License-Identifier: MIT */
/*
 * Go's runtime does its own work, and calls C, on another stack than a goroutine's. The functions that switch to it have
 * unwind information as if they had not, which leads from their frames to whatever is left on the other stack. Only their
 * names tell; what was found behind them is no part of the stack.
 */
#include "runtime/runtime.h"

#include <string.h>

static const char leaves[] = "runtime.mcall";
static const char *const calls[] = {"runtime.systemstack", "runtime.morestack", "runtime.asmcgocall"};

/* "runtime.mcall" and "runtime.mcall.abi0" */
static bool is_function(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return strncmp(symbol, name, len) == 0 && (!symbol[len] || strcmp(symbol + len, ".abi0") == 0);
}

/* True when the frame's function has called something on another stack. *why: the goroutine that called is missing. */
static bool is_switch(const struct frame *frame, const char **why)
{
	*why = NULL;
	if (!frame->symbol || !(frame->flags & FRAME_RETURN_ADDRESS))
		return false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (is_function(frame->symbol, calls[i])) {
			*why = "the Go runtime has switched stacks here";
			return true;
		}
	return is_function(frame->symbol, leaves); /* the thread has left that goroutine for good */
}

static bool merge(void *state, const struct raw_stack *raw, struct stack *stack)
{
	const char *why;

	for (size_t i = 0; i < stack->len; i++)
		if (is_switch(&stack->data[i], &why)) {
			stack->len = i + 1;
			break;
		}
	return true;
}

static bool is_cut(const struct stack *stack, const char **why)
{
	*why = NULL;
	return stack->len && is_switch(&stack->data[stack->len - 1], why);
}

const struct runtime_ops go_runtime = {.name = "go", .merge = merge, .is_cut = is_cut};
