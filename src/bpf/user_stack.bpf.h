/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_USER_STACK_H
#define STAKEOUT_BPF_USER_STACK_H

/*
 * Walks the user stack of the current thread by the tables of unwind_row.h. Only for programs that run in that thread's
 * own context: its memory is the one that is mapped.
 */

#include "bpf/go_stack.bpf.h"
#include "bpf/hotspot_stack.bpf.h"
#include "bpf/runtimes.bpf.h"
#include "bpf/v8_code.h"
#include "bpf/walk.bpf.h"

/* Steps to a record of frame pointer and return address. One without a return address is the end of the stack. */
static bool step_to_record(struct walk *w, __u64 record)
{
	__u64 fp, pc;

	if (!read_word(w, record, &fp) || !read_word(w, record + 8, &pc))
		return end(w, OFFCPU_END_FAULT);
	pc = strip_code(pc);
	if (!pc)
		return end(w, OFFCPU_END_COMPLETE);
	w->sp = record + 16; /* sp rises, whatever the caller had in its frame pointer */
	w->sp_is_bound = !FP_GIVES_SP;
	w->fp = fp;
	w->pc = pc;
	w->found = OFFCPU_BY_FRAME_POINTER;
	w->exact = w->has_lr = 0;
	return true;
}

static bool step_by_frame_pointer(struct walk *w)
{
	if (!w->has_fp || w->fp < w->sp || (w->fp & 7) || !w->fp)
		return end(w, OFFCPU_END_NO_UNWIND);
	return step_to_record(w, w->fp);
}

/* What code still takes off the stack before it returns. */
struct epilogue {
	__u64 frame; /* bytes from sp to above the return address */
	__u64 ra;    /* from sp to the return address */
	__u64 fp;    /* and to the caller's frame pointer, */
	bool has_fp; /* if it is restored */
};

#if defined(__TARGET_ARCH_x86)

/* "add $N,%rsp; pop %rbp; ret", each but the last optional */
static bool read_epilogue(__u64 pc, struct epilogue *out)
{
	__u64 code;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)pc))
		return false;
	out->ra = 0;
	if ((code & 0x80ffffff) == 0xc48348) {
		out->ra = code >> 24 & 0x7f;
		code >>= 32;
	}
	out->fp = out->ra;
	out->has_fp = (code & 0xff) == 0x5d;
	if (out->has_fp) {
		out->ra += 8;
		code >>= 8;
	}
	out->frame = out->ra + 8;
	return (code & 0xff) == 0xc3;
}

#else

/* "ldp x29,x30,[sp],#N; ret" or "ldr x30,[sp,#M]; add sp,sp,#N; ret" */
static bool read_epilogue(__u64 pc, struct epilogue *out)
{
	enum { LDP = 0xa8c07bfd, LDR = 0xf94003fe, ADD = 0x910003ff, RET = 0xd65f03c0 };
	__u32 code[3];

	if (bpf_probe_read_user(code, sizeof(code), (void *)pc))
		return false;
	out->has_fp = (code[0] & 0xffe07fff) == LDP;
	if (out->has_fp) {
		out->fp = 0;
		out->ra = 8;
		out->frame = (code[0] >> 15 & 0x3f) * 8;
		return code[1] == RET;
	}
	out->ra = (code[0] >> 10 & 0xfff) * 8;
	out->frame = code[1] >> 10 & 0xfff;
	return (code[0] & 0xffc003ff) == LDR && (code[1] & 0xffc003ff) == ADD && code[2] == RET && out->ra < out->frame;
}

#endif

static bool step_over_signal(struct walk *w)
{
	__u64 sp = w->sp;

	if (!read_word(w, sp + signal_frame.pc, &w->pc) || !read_word(w, sp + signal_frame.sp, &w->sp) ||
	    !read_word(w, sp + signal_frame.fp, &w->fp) || !read_word(w, sp + signal_frame.link, &w->lr))
		return end(w, OFFCPU_END_FAULT);
	w->exact = INTERRUPTED;
	w->has_fp = w->has_lr = 1;
	w->found = w->sp_is_bound = 0;
	w->r10 = 0; /* not known */
	return true;
}

static bool find_cfa(struct walk *w, const struct unwind_row *row, __u64 *cfa)
{
	const __u32 record = UNWIND_FP_AT_CFA | UNWIND_RA_AT_CFA;
	__u64 offset = 8 * (__s64)row->cfa;

	if ((row->kind == UNWIND_FROM_FP || row->kind == UNWIND_AT_FP) && !w->has_fp)
		return end(w, OFFCPU_END_NO_UNWIND);
	if (w->sp_is_bound && row->kind != UNWIND_FROM_FP) {
		/* The frame record is at fp, and the row says how far that is from the CFA. */
		if ((row->flags & record) != record || row->ra != row->fp + 1 || !w->has_fp)
			return end(w, OFFCPU_END_NO_UNWIND);
		*cfa = w->fp - 8 * (__s64)row->fp;
		return true;
	}
	if (row->kind == UNWIND_FROM_FP) {
		*cfa = w->fp + offset;
	} else if (row->kind == UNWIND_PLT) {
		*cfa = w->sp + 8 + ((w->pc & 15) >= (__u64)row->cfa ? 8 : 0);
	} else if (row->kind == UNWIND_FAR_FROM_SP) {
		*cfa = w->sp + 8 * ((__u64)row->ra << 16 | (__u16)row->cfa);
	} else if (row->kind == UNWIND_AT_SP || row->kind == UNWIND_AT_FP) {
		if (!read_word(w, (row->kind == UNWIND_AT_SP ? w->sp : w->fp) + offset, cfa))
			return end(w, OFFCPU_END_FAULT);
		*cfa += 8 * (__s64)row->ra;
	} else {
		*cfa = w->sp + offset;
	}
	return true;
}

__attribute__((noinline)) int step_by_row(struct walk *w, struct unwind_row *row)
{
	__u64 cfa = 0, pc, fp;
	bool second_number;

	if (!w || !row)
		return 0;
	second_number = row->kind >= UNWIND_FAR_FROM_SP;
	pc = w->lr;
	fp = w->fp;
	if (!find_cfa(w, row, &cfa))
		return false;
	if (second_number || row->flags & UNWIND_RA_AT_CFA) {
		if (!read_word(w, cfa + 8 * (second_number ? -1 : (__s64)row->ra), &pc))
			return end(w, OFFCPU_END_FAULT);
	} else if (!w->has_lr) { /* a later call has overwritten it */
		return end(w, OFFCPU_END_NO_PROGRESS);
	}
	if ((row->flags & UNWIND_FP_AT_CFA) && !read_word(w, cfa + 8 * (__s64)row->fp, &fp))
		return end(w, OFFCPU_END_FAULT);
	if ((row->flags & UNWIND_FP_AT_FP) && !read_word(w, w->fp, &fp))
		return end(w, OFFCPU_END_FAULT);
	pc = strip_code(pc);
	if (!pc)
		return end(w, OFFCPU_END_COMPLETE);
	/* Only a leaf may leave the stack pointer where it is. */
	if (cfa < w->sp || (cfa == w->sp && (!w->exact || pc == w->pc)))
		return end(w, OFFCPU_END_NO_PROGRESS);
	if (row->flags & (UNWIND_FP_AT_CFA | UNWIND_FP_AT_FP))
		w->has_fp = 1;
	if (row->flags & UNWIND_FP_LOST)
		w->has_fp = 0;
	w->sp = cfa;
	w->fp = fp;
	w->pc = pc;
	w->found = w->has_lr = w->sp_is_bound = 0;
	w->exact = RETURN_ADDRESS;
	return true;
}

static bool step_to_goroutine(struct walk *w, struct unwind_row *row)
{
	if (row->kind == UNWIND_GO_MORESTACK)
		return step_to_saved(w, true);
	if (row->kind == UNWIND_GO_SYSTEM) {
		if (!step_to_saved(w, false))
			return false;
	} else if (row->kind == UNWIND_GO_C) {
		if (!go_to_caller_of_c(w))
			return end(w, OFFCPU_END_SWITCHED);
	} else if (row->kind == UNWIND_GO_CALLBACK) {
		if (!go_to_callback(w))
			return end(w, OFFCPU_END_SWITCHED);
		row->flags = UNWIND_RA_AT_CFA | UNWIND_FP_LOST; /* on aarch64 it was below sp */
	} else {
		if (!w->has_fp)
			return end(w, OFFCPU_END_SWITCHED);
		w->sp = w->fp - 8 * ((__s64)row->fp + row->cfa);
		w->sp_is_bound = 0;
	}
	row->kind = UNWIND_FROM_SP;
	return step_by_row(w, row);
}

/*
 * Code without CFI at the top of the stack makes a system call, as in glibc's clone: it has pushed nothing, so its
 * return address is still where the call put it. It must point into known code. V8's makes none.
 */
static bool step_from_stub(struct walk *w)
{
	struct offcpu_mapping mapping = {};
	const bool linked = HAS_LINK && w->has_lr;
	__u64 pc = w->lr;

	if (is_v8_file(w, w->pc))
		return false;
	if (!linked && !read_word(w, w->sp, &pc))
		return false;
	pc = strip_code(pc);
	if (!find_mapping(w, pc - 1, &mapping))
		return false;
	w->sp += linked ? 0 : 8;
	w->pc = pc;
	w->found = OFFCPU_BY_FRAME_POINTER;
	w->exact = w->has_lr = 0;
	return true;
}

/* Code without a table that goes straight to its return: that leaves no doubt, whatever is in its frame pointer. */
static bool step_by_code(struct walk *w)
{
	struct epilogue code = {};
	struct offcpu_mapping mapping = {};
	__u64 pc, fp = w->fp;

	if (w->sp_is_bound || !read_epilogue(w->pc, &code) || !read_word(w, w->sp + code.ra, &pc) ||
	    (code.has_fp && !read_word(w, w->sp + code.fp, &fp)))
		return false;
	pc = strip_code(pc);
	if (!find_mapping(w, pc - 1, &mapping))
		return false;
	w->has_fp |= code.has_fp;
	w->pc = pc;
	w->sp += code.frame;
	w->fp = fp;
	w->found = OFFCPU_BY_CODE;
	w->exact = w->has_lr = 0;
	return true;
}

/*
 * Code that V8 made, and of which nothing was called: where it has no frame of its own, the return address is in a register,
 * or on the top of the stack. -1: it is none, or has its frame.
 */
__attribute__((noinline)) int step_from_v8(struct walk *w)
{
	__u8 code[V8_CODE_BEFORE + V8_CODE_BEHIND];
	struct offcpu_mapping mapping = {};
	__u32 state;
	__u64 pc;

	if (!w || !w->v8_end || !w->exact || !find_mapping(w, w->pc, &mapping) || mapping.object != OFFCPU_NO_OBJECT ||
	    bpf_probe_read_user(code, sizeof(code), (void *)(w->pc - V8_CODE_BEFORE)))
		return -1;
	state = V8_STATE(code, sizeof(code));
	if (state == V8_FRAME_WHOLE)
		return -1;
	if (state == V8_FRAME_PUSHED)
		return step_to_record(w, w->sp);
	pc = HAS_LINK ? w->lr : w->r10;
	if ((!HAS_LINK && state != V8_FRAME_SCRATCH && !read_word(w, w->sp, &pc)) || !pc)
		return -1;
	w->sp += HAS_LINK || state == V8_FRAME_SCRATCH ? 0 : 8;
	w->pc = strip_code(pc);
	w->found = OFFCPU_BY_CODE;
	w->exact = w->has_lr = 0;
	return 1;
}

/* The row of an address, from the tables. False when it is in no known mapping. */
static bool search_row(struct walk *w, __u64 at, struct unwind_row *out)
{
	struct offcpu_mapping mapping = {};
	int found = ROW_NONE;
	__u64 offset;

	if (!find_mapping(w, at, &mapping))
		return false;
	offset = at - mapping.bias;
	if (mapping.object == OFFCPU_NO_OBJECT || !mapping.nrows) {
		out->kind = UNWIND_NO_TABLE;
		return true;
	}
	if (offset <= 0xffffffff)
		found = find_row(&mapping, (__u32)offset, out);
	if (found == ROW_NONE)
		out->kind = UNWIND_NONE;
	return found != ROW_OF_OTHERS;
}

__attribute__((noinline)) int look_up_row(struct walk *w, struct unwind_row *out)
{
	struct row_cache *cache;
	struct cached_row *c;
	__u32 which, forgotten;
	__u64 at, hash;

	if (!w || !out)
		return 0;
	which = w->which;
	forgotten = nforgotten;
	cache = bpf_map_lookup_elem(&row_caches, &which);
	if (!cache)
		return 0;
	at = w->pc - !w->exact;
	hash = (at ^ w->maps.set) * 0x9e3779b97f4a7c15ull;
	c = &cache->rows[(hash >> 40) % CACHED_ROWS];
	if (c->at != at || c->set != w->maps.set || c->nforgotten != forgotten) {
		if (!search_row(w, at, out))
			return 0;
		c->at = at;
		c->set = w->maps.set;
		c->nforgotten = forgotten;
		c->row = *out;
	} else {
		*out = c->row;
	}
	return 1;
}

/* Code that no table tells of: by what it does until it returns, or by its frame pointer. */
__attribute__((noinline)) int step_without_table(struct walk *w)
{
	int v8;

	if (!w)
		return 0;
	v8 = step_from_v8(w);
	return v8 >= 0 ? v8 : step_by_code(w) || step_by_frame_pointer(w);
}

static bool step_by_java(struct walk *w)
{
	int result = step_in_java(w, w->which);

	return result == JAVA_STEP_UNKNOWN ? step_without_table(w) : result == JAVA_STEP_FOUND;
}

static bool step(struct walk *w)
{
	struct unwind_row row = {};

	if (is_code_of_java(w)) /* whether or not it was mapped when the map was read: its heaps grow */
		return step_by_java(w);
	if (!look_up_row(w, &row))
		return end(w, OFFCPU_END_NO_TABLES);
	switch (row.kind) {
	case UNWIND_FROM_SP:
	case UNWIND_FROM_FP:
	case UNWIND_PLT:
	case UNWIND_FAR_FROM_SP:
	case UNWIND_AT_SP:
	case UNWIND_AT_FP:
		return step_by_row(w, &row);
	case UNWIND_GO_FRAME:
	case UNWIND_GO_SYSTEM:
	case UNWIND_GO_C:
	case UNWIND_GO_MORESTACK:
	case UNWIND_GO_CALLBACK:
		return step_to_goroutine(w, &row);
	case UNWIND_SIGNAL:
		return step_over_signal(w);
	case UNWIND_END:
		if (row.flags & UNWIND_RESUMES)
			w->exact = RESUMES;
		return end(w, OFFCPU_END_COMPLETE);
	case UNWIND_NONE:
		return (w->n == 1 && step_from_stub(w)) || step_by_frame_pointer(w);
	case UNWIND_NO_TABLE:
		return step_without_table(w);
	default:
		return end(w, OFFCPU_END_UNSUPPORTED);
	}
}

static long walk_frame(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);
	struct walk *w;
	__u64 mark;
	__u32 at;

	if (!scratch)
		return 1;
	w = &scratch->walk;
	at = w->first + w->n;
	if (w->n >= OFFCPU_USER_FRAMES || at >= OFFCPU_FRAMES) {
		w->end = OFFCPU_END_DEPTH;
		return 1;
	}
	scratch->sps[w->n] = w->sp;
	mark = w->exact == RESUMES ? OFFCPU_RESUMES : OFFCPU_INTERRUPTED;
	scratch->frames[at] = w->pc | w->found | (w->exact && w->n ? mark : 0);
	w->n++;
	if (w->only_innermost)
		w->end = OFFCPU_END_32BIT;
	if (!w->only_innermost && step(w))
		return 0;
	if (w->end == OFFCPU_END_COMPLETE && w->exact == RESUMES)
		scratch->frames[at] |= OFFCPU_RESUMES;
	return 1;
}

/* True when the thread is in 32-bit code, whose stack has words of another size. */
static bool is_32bit(const struct user_registers *regs)
{
#if defined(__TARGET_ARCH_x86)
	enum { USER32_CS = 0x23, XEN_USER32_CS = 0xe023 };
	__u16 cs = (__u16)regs->cs;

	return cs == USER32_CS || cs == XEN_USER32_CS;
#else
	enum { PSTATE_32BIT = 0x10 };

	return regs->pstate & PSTATE_32BIT;
#endif
}

/* Where the walk came to code that is not known. */
static __u64 missed_by(const struct walk *w)
{
	return w->pc - !w->exact;
}

static long note_code(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	bool *is_code = ctx;

	*is_code = vma->vm_flags & VM_EXEC;
	return 0;
}

/* Why the walk came to an address in no known mapping: some stacks lead to where there is no code. */
static __u32 why_unknown(struct task_struct *task, const struct walk *w)
{
	enum { ENOENT = 2 };
	bool is_code = false;
	long rc = bpf_find_vma(task, missed_by(w), note_code, &is_code, 0);

	if (rc == -ENOENT || (rc == 0 && !is_code))
		return OFFCPU_END_NOT_CODE;
	return w->maps.count < OFFCPU_MAX_MAPPINGS ? OFFCPU_END_NO_TABLES : OFFCPU_END_MANY_MAPPINGS;
}

/* What a walk needs to know of the runtimes that the process has; most have none. */
static void know_runtimes(struct stack_scratch *scratch, const struct offcpu_runtime *known)
{
	struct walk *w = &scratch->walk;

	w->has_runtimes = 1;
	w->v8_start = known->v8.code_start;
	w->v8_end = known->v8.code_end;
	if (known->v8.has_copies)
		w->v8_object = object_at(w, w->v8_start);
	w->has_java = known->hotspot.high != 0;
	if (w->has_java)
		scratch->java.at = known->hotspot;
}

/*
 * Puts the frames behind those of the kernel. A global function, as it may have to be done twice: with the maps that were
 * known, and with those that were then found. The walk is in the scratch as there is little room on the programs' own stack.
 */
__attribute__((noinline)) int walk_user(__u32 tgid, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct user_registers *regs;
	struct offcpu_runtime *known;
	struct offcpu_maps *maps;
	struct walk *w;

	/* Older kernels look at every global function, and some do not have what this one needs. */
	if (!want_user || !scratch)
		return 0;
	regs = (struct user_registers *)bpf_task_pt_regs((struct task_struct *)bpf_get_current_task_btf());
	maps = bpf_map_lookup_elem(&processes, &tgid);
	w = &scratch->walk;
	*w = (struct walk){
		.exact = INTERRUPTED, .has_fp = 1, .has_lr = 1, .which = which, .first = scratch->head.nkernel, .v8_object = OFFCPU_NO_OBJECT};
	drop_runtime_frames(scratch, 0, (struct offcpu_stack_id){}, OFFCPU_RUNTIME_NONE);
	if (maps)
		w->maps = *maps;
	known = want_runtimes ? bpf_map_lookup_elem(&runtimes, &tgid) : 0;
	if (known)
		know_runtimes(scratch, known);
	scratch->head.set = w->maps.set;
#if defined(__TARGET_ARCH_x86)
	w->pc = regs->ip;
	w->sp = regs->sp;
	w->fp = regs->bp;
	w->lr = regs->di;
	w->go = regs->r14;
	w->r10 = regs->r10;
	w->bytecode = regs->r13;
#else
	w->pc = regs->pc;
	w->sp = regs->sp;
	w->fp = regs->regs[29];
	w->lr = strip_code(regs->regs[30]);
	w->go = regs->regs[28];
	w->bytecode = regs->regs[22];
#endif
	if (bpf_probe_read_user(scratch->copy, sizeof(scratch->copy), (void *)w->sp) == 0)
		w->copied = w->sp;
	if (!w->pc)
		return 0; /* a thread that the kernel runs in this process, such as io_uring's */
	w->only_innermost = is_32bit(regs);
	bpf_loop(OFFCPU_USER_FRAMES + 1, walk_frame, &which, 0);
	scratch->head.nuser = w->n;
	scratch->head.user_end = w->end;
	return 0;
}

#endif
