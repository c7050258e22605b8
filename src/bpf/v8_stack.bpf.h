/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_V8_STACK_H
#define STAKEOUT_BPF_V8_STACK_H

/*
 * The frames of V8 in a stack whose native frames are known: as runtime/v8/frame.c finds them. Functions move when garbage is
 * collected, but what they share with others of the same source, from which the names are, seldom does: that is told.
 */

#include "bpf/runtimes.bpf.h"
#include "bpf/v8_code.h"

enum { V8_TAG = 1, V8_TAG_MASK = 3, V8_RECORD = 16, V8_EXIT_TARGET = 24 };

static bool is_v8_object(__u64 value)
{
	return (value & V8_TAG_MASK) == V8_TAG;
}

/* Whether a map is that of objects of this type, or one of these; *seen: one that is. */
static bool is_v8_type(const struct v8_walk *v, __u64 map, __u32 first, __u32 last, __u64 *seen)
{
	__u16 type;

	if (map && map == *seen)
		return true;
	if (!is_v8_object(map) || bpf_probe_read_user(&type, sizeof(type), (void *)(map - V8_TAG + v->at.map_type)) ||
	    type < first || type > last)
		return false;
	*seen = map;
	return true;
}

/*
 * The beginning of an object, up to this word. While garbage is collected, which a thread may have to wait for, the place of a
 * map may say where the object has moved.
 */
static bool read_v8_object(struct v8_walk *v, __u64 value, __u32 last)
{
	const __u32 size = (last + 1) * sizeof(__u64) & (OFFCPU_V8_WORDS * sizeof(__u64) - 1);

	if (!is_v8_object(value) || !size || bpf_probe_read_user(v->object, size, (void *)(value - V8_TAG)))
		return false;
	if (is_v8_object(v->object[0]))
		return true;
	return bpf_probe_read_user(v->object, size, (void *)v->object[0]) == 0;
}

static __u64 v8_word(const __u64 words[OFFCPU_V8_WORDS], __u32 index)
{
	return words[index % OFFCPU_V8_WORDS];
}

/* What a function shares with others of the same source; 0: it is none. Leaves that in v->object. */
static __attribute__((noinline)) __u64 find_shared(struct v8_walk *v, __u64 function)
{
	const struct offcpu_v8 *at = &v->at;
	__u64 shared;
	__u32 last = at->shared_name > at->shared_script ? at->shared_name : at->shared_script;

	if (!read_v8_object(v, function, at->function_shared) ||
	    !is_v8_type(v, v->object[0], at->type_function_first, at->type_function_last, &v->function_map))
		return 0;
	shared = v8_word(v->object, at->function_shared);
	if (!read_v8_object(v, shared, last) ||
	    !is_v8_type(v, v->object[0], at->type_shared, at->type_shared, &v->shared_map))
		return 0;
	return shared;
}

/* Where in the bytecode the interpreter is, plus 1; 0: the frame is not one of the interpreter. */
static __u64 find_offset(struct v8_walk *v)
{
	const __u64 bytecode = v8_word(v->frame, v->at.frame_bytecode), offset = v8_word(v->frame, v->at.frame_offset);
	__u64 map;

	if (!is_v8_object(bytecode) || (__u32)offset || (offset >> 32) + 1 >= 1 << OFFCPU_V8_OFFSET_BITS ||
	    bpf_probe_read_user(&map, sizeof(map), (void *)(bytecode - V8_TAG)) ||
	    !is_v8_type(v, map, v->at.type_bytecode, v->at.type_bytecode, &v->bytecode_map))
		return 0;
	return (offset >> 32) + 1;
}

static bool is_builtin(const struct v8_walk *v)
{
	return v->place & 1ull << OFFCPU_V8_BUILTIN_BIT;
}

/* False: it is none, and nothing was told. */
static bool tell_function(struct stack_scratch *scratch, __u64 function)
{
	struct v8_walk *v = &scratch->v8;
	__u64 shared = find_shared(v, function), place = v->place, offset;

	if (!shared)
		return false;
	place |= (__u64)offcpu_v8_proof(v8_word(v->object, v->at.shared_name), v8_word(v->object, v->at.shared_script))
		 << OFFCPU_V8_PROOF_BIT;
	offset = is_builtin(v) ? find_offset(v) : 0;
	if (add_runtime_frame(scratch, shared, place | offset, v->raw, OFFCPU_JS, 0) && offset)
		add_more(scratch, v8_word(v->frame, v->at.frame_bytecode));
	return true;
}

/* A frame that has no function, of this kind. */
static void tell_kind(struct stack_scratch *scratch, __u64 kind)
{
	add_runtime_frame(scratch, 0, scratch->v8.place | kind << OFFCPU_V8_KIND_BIT, scratch->v8.raw, OFFCPU_JS, 0);
}

/* Code of V8, or in no file, which is what V8 has made. */
static __attribute__((noinline)) bool is_v8_code(struct stack_scratch *scratch)
{
	struct offcpu_mapping mapping = {};

	return is_builtin(&scratch->v8) ||
	       (find_mapping(&scratch->walk, scratch->v8.pc, &mapping) && mapping.object == OFFCPU_NO_OBJECT);
}

/*
 * Of a frame of this kind; 0: it has none. A builtin in C++ has it among its arguments, one that goes on where optimised code
 * was left has it where functions have it.
 */
static __u64 read_marked_function(struct v8_walk *v, __u64 kind)
{
	__u64 function = 0;

	if (kind == v->at.kind_continuation || kind == v->at.kind_catching_continuation)
		return v8_word(v->frame, v->at.frame_function);
	if (kind == v->at.kind_builtin_exit)
		bpf_probe_read_user(&function, sizeof(function), (void *)(v->fp + V8_EXIT_TARGET));
	return function;
}

/* A mark says what kind of frame it is. */
static void tell_marked(struct stack_scratch *scratch, __u64 kind)
{
	struct v8_walk *v = &scratch->v8;
	__u64 function;

	if (!kind || kind > OFFCPU_V8_MAX_KIND || !is_v8_code(scratch))
		return;
	function = read_marked_function(v, kind);
	if (!function) {
		tell_kind(scratch, kind);
		return;
	}
	v->place |= kind << OFFCPU_V8_KIND_BIT;
	if (!tell_function(scratch, function))
		tell_kind(scratch, kind);
}

/* Code of which nothing was called: its frame may not be whole, or not be there. */
static bool is_at_edge(const struct v8_walk *v, __u64 sp)
{
	if (v->fp < sp + (OFFCPU_V8_WORDS - v->at.frame_function) * sizeof(__u64))
		return true;
#if defined(__TARGET_ARCH_arm64)
	__u8 code[V8_PROLOGUE];

	return bpf_probe_read_user(code, sizeof(code), (void *)(v->pc - sizeof(code))) || v8_begins_aarch64(code, sizeof(code));
#else
	return false;
#endif
}

/* Looks at one native frame, of which the caller was found by frame pointer: there the caller's begins. */
static long take_v8_frame(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);
	struct v8_walk *v;
	__u64 frame, caller, context;
	bool exact;
	__u32 at;

	if (!scratch)
		return 1;
	v = &scratch->v8;
	at = scratch->head.nkernel + index;
	if (index >= OFFCPU_USER_FRAMES - 1 || index + 1 >= scratch->head.nuser || at >= OFFCPU_FRAMES - 1)
		return 1;
	frame = scratch->frames[at];
	caller = scratch->frames[at + 1];
	exact = !index || frame & (OFFCPU_INTERRUPTED | OFFCPU_RESUMES);
	if (!(caller & (OFFCPU_BY_FRAME_POINTER | (exact ? OFFCPU_BY_CODE : 0))))
		return 0;
	v->raw = index;
	v->pc = (frame & ~OFFCPU_MARKS) - !exact;
	v->fp = scratch->sps[index + 1] - V8_RECORD;
	v->place = (__u64)is_v8_file(&scratch->walk, v->pc) << OFFCPU_V8_BUILTIN_BIT;
	if (exact && (caller & OFFCPU_BY_CODE || is_at_edge(v, scratch->sps[index]))) {
		if (!is_builtin(v) && is_v8_code(scratch))
			tell_kind(scratch, OFFCPU_V8_AT_EDGE);
		return 0;
	}
	if (bpf_probe_read_user(v->frame, sizeof(v->frame), (void *)(v->fp - sizeof(v->frame))))
		return 0;
	context = v8_word(v->frame, v->at.frame_context);
	if (context & V8_TAG) {
		v->place |= (__u64)OFFCPU_V8_FUNCTION << OFFCPU_V8_KIND_BIT;
		tell_function(scratch, v8_word(v->frame, v->at.frame_function));
	} else {
		tell_marked(scratch, context >> 1);
	}
	return 0;
}

__attribute__((noinline)) int take_v8_frames(__u32 tgid, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct offcpu_runtime *known = bpf_map_lookup_elem(&runtimes, &tgid);

	if (!want_user || !scratch || !known || !known->v8.code_start)
		return 0;
	scratch->v8.at = known->v8;
	scratch->v8.shared_map = scratch->v8.function_map = scratch->v8.bytecode_map = 0;
	bpf_loop(OFFCPU_USER_FRAMES, take_v8_frame, &which, 0);
	return 0;
}

#endif
