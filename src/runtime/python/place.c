/* SPDX-License-Identifier: MIT */
#include "runtime/python/place.h"

#include <string.h>

static const char mismatch[] = "the interpreter's frames do not match the native ones";

/* Whether it is code of the file that has the interpreter: the compiler moves parts of that far from its symbol. */
static bool is_interpreter(const struct python_layout *layout, const struct maps *maps, uint64_t pc)
{
	const struct map_entry *own = maps_find(maps, layout->at[PY_EVAL_START]), *at = maps_find(maps, pc);

	return own && at && own->inode == at->inode && own->dev_major == at->dev_major && own->dev_minor == at->dev_minor;
}

/* The native frame from `from` on whose part of the stack has the address; raw->len: none. */
static uint32_t find_frame(const struct raw_stack *raw, uint32_t from, uint64_t address)
{
	for (uint32_t i = from; i + 1 < raw->len; i++)
		if (address >= raw->data[i].sp && address < raw->data[i + 1].sp)
			return i;
	return (uint32_t)raw->len;
}

/* The same by what is known of the frame: its pc. It begins below the address, wherever it ends. */
static uint32_t find_known(const struct raw_stack *raw, uint32_t from, uint64_t address, uint64_t pc)
{
	for (uint32_t i = from; i < raw->len && raw->data[i].sp <= address; i++)
		if (raw->data[i].pc == pc)
			return i;
	return (uint32_t)raw->len;
}

static bool is_eval(const struct python_layout *layout, uint64_t pc)
{
	return pc >= layout->at[PY_EVAL_START] && pc < layout->at[PY_EVAL_END];
}

/*
 * The interpreter is just beginning an activation, and this may not say yet which one it follows: compilers put that where they
 * like. A program that changes stacks itself (greenlet) has such a frame for good, but is seldom right there.
 */
static bool is_unlinked(const struct python_layout *layout, const struct raw_stack *raw, const struct python_chain *chain,
			const uint32_t *places)
{
	if (chain->len != 1 || places[0] != 0)
		return false;
	for (size_t i = 1; i < raw->len; i++)
		if (is_eval(layout, raw->data[i].pc))
			return true;
	return false;
}

static const char *place_by_anchor(const struct python_layout *layout, const struct maps *maps, const struct raw_stack *raw,
				   const struct u64map *known, const struct python_chain *chain, uint32_t *out)
{
	uint64_t last = 0;
	uint32_t at = 0;

	for (size_t i = 0; i < chain->len; i++) {
		uint64_t anchor = chain->frames[i].anchor, *pc = u64map_find(known, anchor);

		if (!anchor)
			return mismatch;
		if (anchor != last)
			at = pc ? find_known(raw, last ? at + 1 : 0, anchor, *pc) : find_frame(raw, last ? at + 1 : 0, anchor);
		if (at == raw->len ? raw->end == STACK_COMPLETE : !is_interpreter(layout, maps, raw->data[at].pc))
			return mismatch;
		last = anchor;
		out[i] = at;
	}
	return is_unlinked(layout, raw, chain, out) ? mismatch : NULL;
}

static const char *place_by_count(const struct python_layout *layout, const struct raw_stack *raw,
				  const struct python_chain *chain, uint32_t *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < raw->len; i++) {
		if (!is_eval(layout, raw->data[i].pc))
			continue;
		if (n < chain->len)
			out[n] = i;
		n++;
	}
	/* More Python frames than native ones are those that the walk did not get to, or that are just being begun. */
	if ((n > chain->len && !chain->cut) || (n < chain->len && raw->end == STACK_COMPLETE))
		return mismatch;
	for (; n < chain->len; n++)
		out[n] = (uint32_t)raw->len;
	return NULL;
}

const char *python_place(const struct python_layout *layout, const struct maps *maps, const struct raw_stack *raw,
			 const struct u64map *known, const struct python_chain *chain, uint32_t *out)
{
	if (layout->at[PY_FRAMES] == PY_FRAMES_OBJECTS)
		return place_by_count(layout, raw, chain, out);
	return place_by_anchor(layout, maps, raw, known, chain, out);
}

uint32_t python_last_native(const struct stack *stack, uint32_t raw, uint32_t next)
{
	static const char *const starts[] = {"_PyEval_", "PyEval_EvalCode", "_PyFunction_Vectorcall"};
	size_t i = 0;

	while (i < stack->len && stack->data[i].raw <= raw)
		i++;
	for (bool is_entry = true; is_entry && i < stack->len && stack->data[i].raw < next; i++) {
		const struct frame *frame = &stack->data[i];

		is_entry = !frame->module;
		for (size_t k = 0; frame->symbol && k < sizeof(starts) / sizeof(starts[0]); k++)
			is_entry |= strncmp(frame->symbol, starts[k], strlen(starts[k])) == 0;
		if (is_entry && !frame->inlined)
			raw = frame->raw;
	}
	return raw;
}

uint32_t python_first_native(const struct stack *stack, uint32_t raw)
{
	size_t i = 0;

	while (i < stack->len && stack->data[i].raw < raw)
		i++;
	for (; i > 0; i--) {
		const struct frame *frame = &stack->data[i - 1];

		if (frame->kind != FRAME_KIND_NATIVE || (frame->module && frame->symbol_source != SYMBOL_GDB_JIT) ||
		    frame->flags & FRAME_UNMAPPED)
			break;
		raw = frame->raw;
	}
	return raw;
}
