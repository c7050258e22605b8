/* SPDX-License-Identifier: MIT */
#include "report/nameless.h"

/* A stack without any frame in a file says nothing: the maps of its process are not known. */
bool nameless_code_is_in(const struct stack *stack)
{
	bool unnamed = false, in_file = false;

	for (size_t i = 0; stack && i < stack->len; i++) {
		const struct frame *frame = &stack->data[i];

		if (frame->module)
			in_file = true;
		else if (frame->kind == FRAME_KIND_NATIVE && !frame->symbol && !(frame->flags & FRAME_BY_SCAN))
			unnamed = true;
	}
	return unnamed && in_file;
}
