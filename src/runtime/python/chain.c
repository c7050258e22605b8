/* SPDX-License-Identifier: MIT */
#include "runtime/python/chain.h"

#include <string.h>

enum {
	HEAD = 136, /* of a frame: all that is read of it. The sanity of a layout bounds its offsets by 128 */
	MAX_ACTIVATIONS = PYTHON_MAX_FRAMES * 2,
	MAX_WALK = PYTHON_MAX_FRAMES * 16, /* frames that are passed on the way to the end of an activation */
};

static const char unreadable[] = "a frame of the interpreter could not be read";
static const char broken[] = "the interpreter's activations and its frames do not fit together";

struct head {
	uint64_t code;
	uint64_t previous;
	uint64_t instr;
	uint8_t owner;
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

size_t python_frame_size(const struct python_layout *layout)
{
	static const enum python_word words[] = {PY_FRAME_CODE, PY_FRAME_PREVIOUS, PY_FRAME_INSTR, PY_FRAME_OWNER};
	uint64_t size = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (layout->at[words[i]] + 8 > size)
			size = layout->at[words[i]] + 8;
	return size < HEAD ? size : HEAD;
}

static bool read_head(const struct python_layout *layout, struct mem *mem, uint64_t frame, struct head *out)
{
	uint8_t bytes[HEAD] = {0};
	uint32_t number;

	if (!mem_read_exact(mem, frame, bytes, python_frame_size(layout)))
		return false;
	memcpy(&out->code, bytes + layout->at[PY_FRAME_CODE], 8);
	memcpy(&out->previous, bytes + layout->at[PY_FRAME_PREVIOUS], 8);
	memcpy(&out->instr, bytes + layout->at[PY_FRAME_INSTR], 8);
	out->owner = bytes[layout->at[PY_FRAME_OWNER]];
	out->code &= ~UINT64_C(3); /* tagged since 3.14 */
	out->previous &= ~UINT64_C(3);
	if (layout->at[PY_FRAMES] == PY_FRAMES_OBJECTS) {
		number = (uint32_t)out->instr;
		out->instr = number;
	}
	return true;
}

bool python_frame_read(const struct python_layout *layout, struct mem *mem, uint64_t address, struct python_frame *out)
{
	struct head head;

	if (!read_head(layout, mem, address, &head))
		return false;
	*out = (struct python_frame){.address = address, .code = head.code, .instr = head.instr};
	return true;
}

static bool add_frame(struct python_chain *out, uint64_t address, const struct head *head, uint64_t anchor)
{
	out->cut = out->len == PYTHON_MAX_FRAMES;
	if (out->cut)
		return false;
	out->frames[out->len++] = (struct python_frame){
		.address = address,
		.code = head->code,
		.instr = head->instr,
		.anchor = anchor,
	};
	return true;
}

/*
 * One frame behind the other. Since 3.12 the last of an activation is followed by one that is on the C stack: when there
 * are more than are wanted, the walk still goes on to there.
 */
static void read_frames(const struct python_layout *layout, struct mem *mem, uint64_t frame, struct python_chain *out)
{
	bool shims = layout->at[PY_FRAMES] == PY_FRAMES_SHIM;
	size_t first = 0; /* of the activation */

	for (int i = 0; frame && !(out->cut && (first == out->len || !shims)) && i < MAX_WALK; i++) {
		struct head head;

		if (!read_head(layout, mem, frame, &head)) {
			out->problem = unreadable;
			return;
		}
		if (shims && head.owner >= PY_OWNED_BY_C_STACK) {
			for (; first < out->len; first++)
				out->frames[first].anchor = frame;
		} else {
			add_frame(out, frame, &head, 0);
		}
		frame = head.previous;
	}
	if ((frame && !out->cut) || (shims && first < out->len))
		out->problem = broken; /* a ring, or no activation's */
}

/* 3.11: the structs on the C stack have the innermost frame of each activation, whose outermost is marked. */
static void read_cframes(const struct python_layout *layout, struct mem *mem, uint64_t cframe, struct python_chain *out)
{
	uint64_t expected = 0;

	for (int i = 0; cframe && !out->cut && i < MAX_ACTIVATIONS; i++) {
		struct head head = {0};
		uint64_t frame, previous;

		if (!read_u64(mem, cframe + layout->at[PY_CFRAME_FRAME], &frame) ||
		    !read_u64(mem, cframe + layout->at[PY_CFRAME_PREVIOUS], &previous)) {
			out->problem = unreadable;
			return;
		}
		if (out->len && frame != expected) {
			out->problem = broken;
			return;
		}
		for (expected = frame; frame && !head.owner && !out->cut; frame = expected) {
			if (!read_head(layout, mem, frame, &head)) {
				out->problem = unreadable;
				return;
			}
			add_frame(out, frame, &head, cframe);
			expected = head.previous;
		}
		cframe = previous;
	}
	if (expected && !out->cut)
		out->problem = broken;
}

bool python_tstate_is(const struct python_layout *layout, struct mem *mem, uint64_t tstate, uint64_t thread, pid_t native)
{
	uint64_t said, self;

	if (!layout->at[PY_TSTATE_NATIVE])
		return read_u64(mem, tstate + layout->at[PY_TSTATE_THREAD], &self) && self == thread;
	return read_u64(mem, tstate + layout->at[PY_TSTATE_NATIVE], &said) && said == (uint64_t)native;
}

bool python_chain_first(const struct python_layout *layout, struct mem *mem, uint64_t tstate, struct python_frame *out)
{
	uint64_t frame;
	struct head head;

	if (!read_u64(mem, tstate + layout->at[PY_TSTATE_FRAME], &frame) ||
	    (layout->at[PY_CFRAME_PREVIOUS] && !read_u64(mem, frame + layout->at[PY_CFRAME_FRAME], &frame)) ||
	    !read_head(layout, mem, frame, &head))
		return false;
	if (layout->at[PY_FRAMES] == PY_FRAMES_SHIM && head.owner >= PY_OWNED_BY_C_STACK)
		return python_frame_read(layout, mem, head.previous, out);
	*out = (struct python_frame){.address = frame, .code = head.code, .instr = head.instr};
	return true;
}

void python_chain_read(const struct python_layout *layout, struct mem *mem, uint64_t tstate, struct python_chain *out)
{
	uint64_t root;

	out->len = 0;
	out->cut = false;
	out->problem = NULL;
	if (!read_u64(mem, tstate + layout->at[PY_TSTATE_FRAME], &root)) {
		out->problem = "its thread state could not be read";
		return;
	}
	if (layout->at[PY_FRAMES] == PY_FRAMES_CFRAME) {
		read_cframes(layout, mem, root, out);
		return;
	}
	if (layout->at[PY_CFRAME_PREVIOUS] && !read_u64(mem, root + layout->at[PY_CFRAME_FRAME], &root)) {
		out->problem = unreadable;
		return;
	}
	read_frames(layout, mem, root, out);
}

void python_chain_describe(const struct python_layout *layout, struct offcpu_python *out)
{
	const uint64_t *at = layout->at;

	*out = (struct offcpu_python){
		.interpreters = at[PY_RUNTIME] + at[PY_RUNTIME_INTERPRETERS],
		.eval_start = at[PY_EVAL_START],
		.eval_end = at[PY_EVAL_END],
		.frames = (uint32_t)at[PY_FRAMES],
		.head = (uint32_t)python_frame_size(layout),
		.interp_next = (uint32_t)at[PY_INTERP_NEXT],
		.interp_threads = (uint32_t)at[PY_INTERP_THREADS],
		.tstate_next = (uint32_t)at[PY_TSTATE_NEXT],
		.tstate_frame = (uint32_t)at[PY_TSTATE_FRAME],
		.tstate_thread = (uint32_t)at[PY_TSTATE_THREAD],
		.tstate_native = (uint32_t)at[PY_TSTATE_NATIVE],
		.pthread_tid = (uint32_t)at[PY_PTHREAD_TID],
		.cframe_frame = (uint32_t)at[PY_CFRAME_FRAME],
		.cframe_previous = (uint32_t)at[PY_CFRAME_PREVIOUS],
		.frame_code = (uint32_t)at[PY_FRAME_CODE],
		.frame_previous = (uint32_t)at[PY_FRAME_PREVIOUS],
		.frame_instr = (uint32_t)at[PY_FRAME_INSTR],
		.frame_owner = (uint32_t)at[PY_FRAME_OWNER],
	};
}
