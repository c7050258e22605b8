/* SPDX-License-Identifier: MIT */
#include "symbol/go_switch.h"

#include <string.h>

static const char leaves[] = "runtime.mcall";
static const char *const calls[] = {"runtime.systemstack", "runtime.morestack", "runtime.asmcgocall"};

/* "runtime.mcall" and "runtime.mcall.abi0" */
static bool is_function(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return strncmp(symbol, name, len) == 0 && (!symbol[len] || strcmp(symbol + len, ".abi0") == 0);
}

/* The name of a function that has called something, on whichever stack; "" when there is none. */
static const char *last_caller(const struct stack *stack)
{
	const struct frame *last = stack->len ? &stack->data[stack->len - 1] : NULL;

	return last && last->symbol && last->flags & FRAME_RETURN_ADDRESS ? last->symbol : "";
}

bool go_switch_is_last(const struct stack *stack)
{
	return is_function(last_caller(stack), leaves) || go_switch_error(stack);
}

const char *go_switch_error(const struct stack *stack)
{
	const char *symbol = last_caller(stack);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (is_function(symbol, calls[i]))
			return "the Go runtime has switched stacks here";
	return NULL;
}
