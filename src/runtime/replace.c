/* SPDX-License-Identifier: MIT */
#include "runtime/replace.h"

#include <string.h>

/* The index of the first frame from raw frame `raw` or a later one. Frames come in the order of raw ones. */
static size_t find_raw(const struct stack *stack, uint32_t raw)
{
	size_t i = 0;

	while (i < stack->len && stack->data[i].raw < raw)
		i++;
	return i;
}

bool stack_replace(struct stack *stack, uint32_t first, uint32_t last, const struct frame *frames, size_t n, bool keep)
{
	size_t from = find_raw(stack, first), to = last < UINT32_MAX ? find_raw(stack, last + 1) : stack->len;
	size_t rest = keep ? from : to;

	if (!n)
		return true;
	if (!vec_reserve(stack, stack->len + n))
		return false;
	memmove(&stack->data[from + n], &stack->data[rest], (stack->len - rest) * sizeof(*stack->data));
	stack->len += n - (rest - from);
	for (size_t i = 0; i < n; i++) {
		stack->data[from + i] = frames[i];
		stack->data[from + i].raw = first;
		stack->data[from + i].replaces = i ? 0 : (uint32_t)(to - from);
	}
	return true;
}
