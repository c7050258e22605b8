/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_HOTSPOT_STACK_H
#define STAKEOUT_BPF_HOTSPOT_STACK_H

/*
 * Steps through the code that HotSpot has made, as runtime/hotspot/frame.c does, and tells what each frame stands for. All that
 * is read of it is in the memory of the process, as it is now: heaps grow, and methods are compiled anew.
 */

#include "bpf/runtimes.bpf.h"

enum {
	JAVA_SENDER_SP = -8, /* from the frame pointer of an interpreted frame */
	JAVA_METHOD = -24,
	JAVA_MAX_HOPS = 64,       /* in the segment map: each leads over up to 254 segments */
	JAVA_MAX_FRAME = 1 << 17, /* in words */
	JAVA_MAX_ORIG_PC = 1 << 20,
	JAVA_FREE = 0xff, /* in the segment map */
};

enum java_step {
	JAVA_STEP_UNKNOWN = 0, /* its caller cannot be told from its frame */
	JAVA_STEP_FOUND = 1,
	JAVA_STEP_END = 2, /* walk.end says why */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct offcpu_stub_key);
	__type(value, struct offcpu_stub_rows);
} java_stubs SEC(".maps");

static bool is_code_of_java(struct walk *w)
{
	struct stack_scratch *scratch = w->has_java ? get_scratch(w->which) : 0;

	return scratch && w->pc >= scratch->java.at.low && w->pc < scratch->java.at.high;
}

/* Goes to the caller. */
static int java_step_to(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	w->pc = strip_code(pc);
	w->sp = sp;
	w->fp = fp;
	w->has_fp = 1;
	w->found = w->has_lr = w->sp_is_bound = 0;
	w->exact = RETURN_ADDRESS;
	return JAVA_STEP_FOUND;
}

static int java_step_end(struct walk *w, __u32 why)
{
	end(w, why);
	return JAVA_STEP_END;
}

/* By the record of frame pointer and return address that ends below `above`, where the caller's frame begins. */
static int java_step_by_record(struct walk *w, __u64 above)
{
	__u64 pc, fp;

	if (above < w->sp || !read_word(w, above - 8, &pc) || !read_word(w, above - 16, &fp))
		return java_step_end(w, OFFCPU_END_FAULT);
	return java_step_to(w, pc, above, fp);
}

/* No frame, or one without its record: the return address is where the call left it, and the frame pointer as it was. */
static int java_step_by_link(struct walk *w, __u64 above)
{
	__u64 pc = w->lr;

	if (HAS_LINK)
		return w->has_lr ? java_step_to(w, pc, above, w->fp) : JAVA_STEP_UNKNOWN;
	if (!read_word(w, above, &pc))
		return java_step_end(w, OFFCPU_END_FAULT);
	return java_step_to(w, pc, above + 8, w->fp);
}

static bool has_java_frame_pointer(const struct walk *w)
{
	return w->has_fp && !(w->fp & 7) && w->fp >= w->sp && w->fp;
}

static int java_step_by_frame_pointer(struct walk *w)
{
	return has_java_frame_pointer(w) ? java_step_by_record(w, w->fp + 16) : JAVA_STEP_UNKNOWN;
}

/* The frame of a thread that runs is the interpreter's only if the bytecode that it executes is of the frame's method. */
static bool java_executes(const struct java_walk *j, __u64 method, __u64 bytecode)
{
	__u64 constant, size = 0;

	if (bpf_probe_read_user(&constant, sizeof(constant), (void *)(method + j->at.method_const)) ||
	    bpf_probe_read_user(&size, 2, (void *)(constant + j->at.const_code_size.offset)))
		return false;
	return bytecode - (constant + j->at.const_size) < size;
}

/*
 * An interpreted frame has the sp of its caller, which it may have moved for its own variables. An interpreted caller's
 * may be lower than this very frame (aarch64): there it is of no use, and its frame pointer tells all.
 */
__attribute__((noinline)) int step_interpreted(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	const __u32 below = (JAVA_FRAME_WORDS - 2) * 8;
	__u64 method, bytecode, sender, pc, fp, above;
	struct java_walk *j;

	if (!w || !scratch || !has_java_frame_pointer(w))
		return JAVA_STEP_UNKNOWN;
	j = &scratch->java;
	if (bpf_probe_read_user(j->frame, sizeof(j->frame), (void *)(w->fp - below)))
		return java_step_end(w, OFFCPU_END_FAULT);
	fp = j->frame[JAVA_FRAME_WORDS - 2];
	pc = j->frame[JAVA_FRAME_WORDS - 1];
	sender = j->frame[JAVA_FRAME_WORDS - 2 + JAVA_SENDER_SP / 8];
	method = j->frame[JAVA_FRAME_WORDS - 2 + JAVA_METHOD / 8];
	bytecode = j->frame[((below + j->at.bytecode) / 8) & 7];
	if ((sender & 7) || !method || (method & 7))
		return JAVA_STEP_UNKNOWN;
	if (w->exact) {
		bytecode = w->bytecode;
		if (w->n != 1 || !java_executes(j, method, bytecode))
			return JAVA_STEP_UNKNOWN;
	}
	add_runtime_frame(scratch, method, bytecode, w->n - 1, OFFCPU_JAVA, 0);
	above = w->fp + 16;
	java_step_to(w, pc, sender < above ? above : sender, fp);
	w->sp_is_bound = sender < above;
	return JAVA_STEP_FOUND;
}

/* Where the blob of the pc starts: each byte of the map tells how far to go back, and the first segment has a 0. */
__attribute__((noinline)) int find_blob(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct offcpu_code_heap *heap = 0;
	__u64 segment, shift;
	__u8 back = 0;

	if (!w || !scratch)
		return 0;
	for (__u32 i = 0; i < OFFCPU_CODE_HEAPS && i < scratch->java.at.nheaps; i++) {
		heap = &scratch->java.at.heaps[i];
		if (w->pc >= heap->low && w->pc < heap->high)
			break;
		heap = 0;
	}
	if (!heap)
		return 0;
	shift = heap->log2_segment & 31;
	segment = (w->pc - heap->low) >> shift;
	for (__u32 hops = 0; hops < JAVA_MAX_HOPS; hops++) {
		if (bpf_probe_read_user(&back, 1, (void *)(heap->map + segment)) || back == JAVA_FREE || back > segment)
			return 0;
		if (!back) {
			scratch->java.start = heap->low + (segment << shift) + scratch->java.at.block;
			scratch->java.heap_end = heap->high;
			return 1;
		}
		segment -= back;
	}
	return 0;
}

/* Of what was read of the blob. */
static __u64 java_field(const struct java_walk *j, struct offcpu_field field)
{
	const __u32 at = field.offset;

	if (field.size == 8)
		return *(const __u64 *)&j->head[at & (OFFCPU_HOTSPOT_HEAD - 8)];
	if (field.size == 4)
		return field.is_signed ? (__u64)*(const __s32 *)&j->head[at & (OFFCPU_HOTSPOT_HEAD - 4)]
				       : *(const __u32 *)&j->head[at & (OFFCPU_HOTSPOT_HEAD - 4)];
	if (field.size == 2)
		return field.is_signed ? (__u64)*(const __s16 *)&j->head[at & (OFFCPU_HOTSPOT_HEAD - 2)]
				       : *(const __u16 *)&j->head[at & (OFFCPU_HOTSPOT_HEAD - 2)];
	return field.size ? j->head[at & (OFFCPU_HOTSPOT_HEAD - 1)] : 0;
}

/* Reads the blob of the pc. False as well when it is not what a blob is: then nothing of it is used. */
__attribute__((noinline)) int read_blob(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	__u64 size, frame_size, complete;
	struct java_walk *j;
	__u32 head;

	if (!w || !scratch || !find_blob(w, which))
		return 0;
	j = &scratch->java;
	head = j->at.head;
	if (head > OFFCPU_HOTSPOT_HEAD || bpf_probe_read_user(j->head, head, (void *)j->start))
		return 0;
	size = java_field(j, j->at.blob_size);
	frame_size = java_field(j, j->at.frame_size);
	complete = java_field(j, j->at.frame_complete);
	if (j->at.code_begin.size) {
		j->code.code_begin = java_field(j, j->at.code_begin);
		j->code.code_end = java_field(j, j->at.code_end);
	} else {
		j->code.code_begin = j->start + java_field(j, j->at.code_offset);
		j->code.code_end = j->start + java_field(j, j->at.data_offset);
	}
	j->code.pc = w->pc;
	j->code.frame_size = frame_size <= JAVA_MAX_FRAME ? (__u32)frame_size : 0; /* -1: it has none */
	j->code.frame_complete = complete <= size ? (__u32)complete : 0;
	return size && size <= j->heap_end - j->start && j->code.code_begin >= j->start &&
	       j->code.code_end - j->start <= size && w->pc >= j->code.code_begin && w->pc < j->code.code_end;
}

#if defined(__TARGET_ARCH_x86)
#define top_scan_native top_scan_x86_64
#define top_prologue_native top_prologue_x86_64
#define top_know_stub_native top_know_stub_x86_64
#else
#define top_scan_native top_scan_aarch64
#define top_prologue_native top_prologue_aarch64
#define top_know_stub_native top_know_stub_aarch64
#endif

static long scan_top(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);

	return !scratch || !top_scan_native(&scratch->java.code, index, &scratch->java.scan);
}

#if defined(__TARGET_ARCH_x86)

static int find_top_behind_prologue(struct java_walk *j, __u32 which)
{
	return top_epilogue_x86_64(&j->code);
}

#else

static long look_back(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);

	return !scratch || !top_look_back_aarch64(&scratch->java.code, index, &scratch->java.scan);
}

static long follow_top(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);

	return !scratch || !top_follow_aarch64(&scratch->java.code, index, &scratch->java.scan);
}

static int find_top_behind_prologue(struct java_walk *j, __u32 which)
{
	bpf_loop(TOP_BEFORE, look_back, &which, 0);
	bpf_loop(TOP_BEHIND, follow_top, &which, 0);
	return top_epilogue_aarch64(&j->code, &j->scan);
}

#endif

/* How much of its frame a method has that was interrupted: enum top_state. */
__attribute__((noinline)) int find_top(__u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct top_code *code;
	__u64 len;

	/* Once is enough: only signals interrupt other frames than the innermost. */
	if (!want_user || !scratch || scratch->walk.looked_at_top)
		return TOP_UNKNOWN;
	scratch->walk.looked_at_top = 1;
	code = &scratch->java.code;
	if (!top_choose_window(code))
		return TOP_UNKNOWN;
	len = code->end - code->start;
	if (len > TOP_MAX_WINDOW || bpf_probe_read_user(code->bytes, len, (void *)code->start))
		return TOP_UNKNOWN;
	if (code->is_stub && !top_know_stub_native(code))
		return TOP_UNKNOWN;
	code->link = HAS_LINK && scratch->walk.has_lr ? scratch->walk.lr : 0;
	scratch->java.scan = (struct top_scan){};
	if (!top_is_prologue(code))
		return find_top_behind_prologue(&scratch->java, which);
	bpf_loop(TOP_MAX_WINDOW, scan_top, &which, 0);
	return top_prologue_native(code, &scratch->java.scan);
}

#if defined(__TARGET_ARCH_x86)

static __u64 below_frame(struct walk *w)
{
	return 0;
}

#else

/*
 * What is below the frame of a method that has called into the virtual machine: in 8 and 11, where that call tells nothing of
 * its caller, the address that it returns to, from where the method takes it off again ("add sp, sp, #16").
 */
static __u64 below_frame(struct walk *w)
{
	__u64 left;
	__u32 insn;

	return read_word(w, w->sp + 8, &left) && left == w->pc &&
			       bpf_probe_read_user(&insn, sizeof(insn), (void *)w->pc) == 0 && insn == 0x910043ff
		       ? 16
		       : 0;
}

#endif

/*
 * Whether the link register agrees with the return address of a frame that ends there: that is still in it, or a call has put
 * another one there. If it leads elsewhere, the frame is none.
 */
static bool agrees_with_link(struct walk *w, const struct top_code *code, __u64 above)
{
	__u64 pc;

	if (!HAS_LINK || !w->has_lr || (w->lr >= code->code_begin && w->lr < code->code_end))
		return true;
	return !read_word(w, above - 8, &pc) || strip_code(pc) == w->lr;
}

/* A wrapper of a native method makes a second frame in some places, to call the virtual machine. */
static bool returns_to_itself(struct walk *w, const struct top_code *code)
{
	__u64 pc;

	return has_java_frame_pointer(w) && read_word(w, w->fp + 8, &pc) && strip_code(pc) >= code->code_begin &&
	       strip_code(pc) < code->code_end;
}

/* Compiled methods, wrappers and most stubs: the size of their frames is known. */
__attribute__((noinline)) int step_by_size(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	__u64 above;

	if (!w || !scratch || w->sp_is_bound)
		return JAVA_STEP_UNKNOWN;
	above = w->sp + 8 * (__u64)scratch->java.code.frame_size;
	if (!w->exact)
		return java_step_by_record(w, above + below_frame(w));
	switch (find_top(which)) {
	case TOP_WHOLE:
		above += scratch->java.scan.below;
		return agrees_with_link(w, &scratch->java.code, above) ? java_step_by_record(w, above) : JAVA_STEP_UNKNOWN;
	case TOP_AT_FP:
		return returns_to_itself(w, &scratch->java.code) ? JAVA_STEP_UNKNOWN : java_step_by_frame_pointer(w);
	case TOP_RECORD:
		return java_step_by_record(w, w->sp + 16);
	case TOP_NONE:
		return java_step_by_link(w, w->sp);
	case TOP_UNSAVED:
		return java_step_by_link(w, HAS_LINK ? above : above - 8);
	default:
		return JAVA_STEP_UNKNOWN;
	}
}

static __always_inline bool name_starts(const struct java_walk *j, const char *start)
{
	for (__u32 i = 0; i < JAVA_NAME && start[i]; i++)
		if (j->name[i] != start[i])
			return false;
	return true;
}

static void read_name(struct java_walk *j)
{
	if (bpf_probe_read_user(j->name, sizeof(j->name), (void *)java_field(j, j->at.blob_name)))
		j->name[0] = 0;
}

/*
 * What the name of an interrupted blob tells: of a stub that has a frame, where that is complete is not known. A name that is not
 * in memory is a method's. False: a stub that takes frames off and puts others there.
 */
static bool know_kind(struct java_walk *j)
{
	read_name(j);
	j->code.keeps_fp = name_starts(j, "native nmethod");
	j->code.is_stub = j->name[0] && !j->code.keeps_fp && !name_starts(j, "nmethod");
	return !name_starts(j, "DeoptimizationBlob") && !name_starts(j, "UncommonTrapBlob");
}

/*
 * A compiled frame that the virtual machine has given up has another return address, and keeps the true one. Its place is
 * what the frame stands for; the frame itself is as before.
 */
static __u64 place_of_compiled(struct walk *w, const struct java_walk *j)
{
	__u64 handler = j->at.deopt_handler.size ? java_field(j, j->at.deopt_handler)
						 : j->start + java_field(j, j->at.deopt_offset);
	__u64 slot = java_field(j, j->at.orig_pc_offset), pc;

	if (w->pc != handler || w->sp_is_bound || !j->at.orig_pc_offset.size || slot > JAVA_MAX_ORIG_PC ||
	    !read_word(w, w->sp + slot, &pc) || pc < j->code.code_begin || pc >= j->code.code_end)
		return w->pc;
	return pc;
}

/*
 * A virtual thread that goes on has only its innermost frames on the stack of its carrier. The last of them returns to a
 * stub that fetches more, with the frame pointer of the frame in which the carrier called it. What calls such a stub
 * otherwise is native code.
 */
static bool is_return_barrier(const struct walk *w, const struct stack_scratch *scratch)
{
	const struct java_walk *j = &scratch->java;
	const __u32 at = w->first + w->n - 2;
	__u64 pc;

	if (w->exact || w->n < 2 || at >= OFFCPU_FRAMES || !name_starts(j, "StubRoutines (continuation"))
		return false;
	pc = scratch->frames[at] & ~OFFCPU_MARKS;
	return pc >= j->at.low && pc < j->at.high;
}

/* Whether what a routine returns to has a frame where it must be: has_frame() in runtime/hotspot/frame.c. */
static bool has_java_frame(struct walk *w, __u32 which, struct java_walk *j)
{
	__u64 pc;

	if (!is_code_of_java(w) || (w->pc >= j->at.interpreter && w->pc < j->at.interpreter_end) || !read_blob(w, which))
		return false;
	if (j->code.frame_size < 2)
		return true;
	return read_word(w, w->sp + 8 * ((__u64)j->code.frame_size - 1), &pc) && strip_code(pc) >= j->at.low && strip_code(pc) < j->at.high;
}

/*
 * A routine that was interrupted, or has called another one, by what user space has found out of its code: see struct
 * offcpu_stub_rows.
 */
__attribute__((noinline)) int step_in_routine(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct offcpu_stub_key key = {};
	struct offcpu_stub_rows *rows;
	__u64 pc, sp, fp, above;
	__u8 has_fp, has_lr, exact;
	int result;
	__u32 row;

	if (!w || !scratch || w->sp_is_bound)
		return JAVA_STEP_UNKNOWN;
	key.block = w->pc / OFFCPU_STUB_BLOCK;
	key.id = scratch->java.at.id;
	rows = bpf_map_lookup_elem(&java_stubs, &key);
	row = rows ? rows->rows[w->pc % OFFCPU_STUB_BLOCK] : OFFCPU_STUB_UNKNOWN;
	if (!row)
		return JAVA_STEP_UNKNOWN;
	pc = w->pc;
	sp = w->sp;
	fp = w->fp;
	has_fp = w->has_fp;
	has_lr = w->has_lr;
	exact = w->exact;
	above = 8 * (__u64)(row >> OFFCPU_STUB_SHIFT);
	switch (row % (1 << OFFCPU_STUB_SHIFT)) {
	case OFFCPU_STUB_LINK:
		result = java_step_by_link(w, sp + above);
		break;
	case OFFCPU_STUB_FROM_SP:
		result = java_step_by_record(w, sp + above);
		break;
	default:
		result = has_java_frame_pointer(w) ? java_step_by_record(w, fp + above) : JAVA_STEP_UNKNOWN;
	}
	if (result != JAVA_STEP_FOUND || has_java_frame(w, which, &scratch->java))
		return result;
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->has_fp = has_fp;
	w->has_lr = has_lr;
	w->exact = exact;
	return JAVA_STEP_UNKNOWN;
}

/* What a running thread does in a stub of no known frame is anybody's guess; but some have none, and jump on. */
__attribute__((noinline)) int step_in_stub(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct java_walk *j;
	int result;

	if (!w || !scratch)
		return JAVA_STEP_UNKNOWN;
	j = &scratch->java;
	read_name(j);
	if (is_return_barrier(w, scratch)) {
		add_runtime_frame(scratch, j->start, 0, w->n - 1, OFFCPU_JAVA, 0);
		return java_step_by_frame_pointer(w);
	}
	add_runtime_frame(scratch, j->start, w->pc, w->n - 1, OFFCPU_JAVA, 0);
	if (w->exact && name_starts(j, "vtable chunks"))
		return w->sp_is_bound ? JAVA_STEP_UNKNOWN : java_step_by_link(w, w->sp);
	result = step_in_routine(w, which);
	if (w->exact || result != JAVA_STEP_UNKNOWN)
		return result;
	result = java_step_by_frame_pointer(w);
	if (result == JAVA_STEP_FOUND)
		w->found = OFFCPU_BY_FRAME_POINTER;
	return result;
}

/* Frames of Java are small and many: where the copy of the stack ends, the next part of it is copied at once. */
static void copy_on(struct walk *w, struct stack_scratch *scratch)
{
	const __u64 near = 16 * sizeof(__u64);

	if (w->sp - w->copied + near <= sizeof(scratch->copy))
		return;
	w->copied = bpf_probe_read_user(scratch->copy, sizeof(scratch->copy), (void *)w->sp) == 0 ? w->sp : 0;
}

/* One step from a pc in a code heap: enum java_step. */
__attribute__((noinline)) int step_in_java(struct walk *w, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct java_walk *j;
	bool is_known;

	if (!w || !scratch)
		return JAVA_STEP_UNKNOWN;
	j = &scratch->java;
	if (w->pc >= j->at.interpreter && w->pc < j->at.interpreter_end)
		return step_interpreted(w, which);
	if (!read_blob(w, which))
		return JAVA_STEP_UNKNOWN;
	copy_on(w, scratch);
	if (w->pc == j->at.call_return) {
		add_runtime_frame(scratch, j->start, w->pc, w->n - 1, OFFCPU_JAVA, 0);
		return java_step_by_frame_pointer(w);
	}
	if (j->code.frame_size < 2)
		return step_in_stub(w, which);
	is_known = !w->exact || know_kind(j);
	add_runtime_frame(scratch, j->start, place_of_compiled(w, j), w->n - 1, OFFCPU_JAVA,
			  (__u32)java_field(j, j->at.compile_id));
	return is_known ? step_by_size(w, which) : JAVA_STEP_UNKNOWN;
}

#endif
