/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "lib/abi.h"
#include "lib/stack.h"
#include "report/names.h"

/* What programs get is the model's struct stack. */
const struct stakeout_stack *stack_public(const struct stack *stack)
{
	return stack && stack->len ? (const struct stakeout_stack *)stack : NULL;
}

static const struct stack *stack_own(const struct stakeout_stack *stack)
{
	return (const struct stack *)stack;
}

static uint64_t public_flags(const struct frame *frame)
{
	const uint32_t guesses = FRAME_BY_FRAME_POINTER | FRAME_BY_SCAN | FRAME_BY_CODE;
	uint64_t flags = 0;

	if (frame->inlined)
		flags |= STAKEOUT_FRAME_INLINED;
	if (frame->has_offset)
		flags |= STAKEOUT_FRAME_HAS_OFFSET;
	if (frame->flags & FRAME_RETURN_ADDRESS)
		flags |= STAKEOUT_FRAME_RETURN_ADDRESS;
	if (frame->flags & guesses)
		flags |= STAKEOUT_FRAME_GUESSED;
	return flags;
}

size_t stakeout_stack_depth(const struct stakeout_stack *stack)
{
	return stack ? stack_own(stack)->len : 0;
}

int stakeout_stack_frame(const struct stakeout_stack *stack, size_t index, struct stakeout_frame *out)
{
	const struct frame *frame;
	struct stakeout_frame f;

	if (index >= stakeout_stack_depth(stack))
		return -ERANGE;
	frame = &stack_own(stack)->data[index];
	f = (struct stakeout_frame){
		.pc = frame->address,
		.flags = public_flags(frame),
		.kind = frame_kind_name(frame->kind),
		.function = frame->symbol,
		.function_offset = frame->offset,
		.module_offset = frame->module_offset,
		.file = frame->file,
		.line = frame->line,
		.column = frame->column,
		.found_by = name_found_by(frame),
		.symbol_source = symbol_source_name(frame->symbol_source),
		.tier = frame->tier,
	};
	if (frame->module) {
		f.module = frame->module->path;
		f.build_id = frame->module->build_id;
		f.problem = frame->module->problem;
		f.help = frame->module->help;
	}
	return abi_write(out, &f, sizeof(f));
}
