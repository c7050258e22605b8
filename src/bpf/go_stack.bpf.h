/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_GO_STACK_H
#define STAKEOUT_BPF_GO_STACK_H

/* Where Go's runtime left a goroutine's stack, and with what registers: see go_layout.h. */

#include "bpf/walk.bpf.h"

static bool read_user(__u64 address, __u64 *out)
{
	return !(address & 7) && bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
}

static bool is_on_stack(__u64 goroutine, __u64 sp)
{
	__u64 low, high;

	return read_user(goroutine + GO_G_STACK_LOW, &low) && read_user(goroutine + GO_G_STACK_HIGH, &high) && sp >= low &&
	       sp < high && !(sp & 7);
}

static bool is_run_by(__u64 goroutine, __u64 m)
{
	__u64 runs;

	return read_user(goroutine + GO_G_M, &runs) && runs == m;
}

/* A function as a value: a pointer to a pointer to its code. */
static __attribute__((noinline)) bool is_function(struct walk *w, __u64 value)
{
	struct offcpu_mapping mapping = {};
	__u64 code;

	return read_user(value, &code) && find_mapping(w, code, &mapping);
}

/* Where a thread's variables are, as the kernel noted it when the thread last left its CPU. */
static __u64 find_tls(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase - GO_X86_TLS_BELOW;
#else
	struct task_struct___arm64 *arm = (struct task_struct___arm64 *)task;

	return bpf_core_field_exists(arm->thread.uw.tp_value) ? arm->thread.uw.tp_value + GO_ARM_TLS_ABOVE : 0;
#endif
}

static bool is_own(__u64 g, __u64 *m)
{
	__u64 g0;

	return g && read_user(g + GO_G_M, m) && read_user(*m + GO_M_G0, &g0) && g0 == g;
}

/* The thread's own goroutine, on whose stack the walk is. C, which that may have called, has the register for itself. */
static bool find_own(struct walk *w, __u64 *m)
{
	__u64 g = 0;

	if (is_own(w->go, m))
		return true;
	if (!read_user(find_tls(), &g) || !is_own(g, m) || !is_on_stack(g, w->sp))
		return false;
	w->go = g;
	return true;
}

enum { GO_LOST, GO_FOUND, GO_LEFT };

/* The goroutine that the thread works for. GO_LEFT: it has left that for good, if *g is 0 or a function. */
static int find_goroutine(struct walk *w, __u64 *g, bool *old)
{
	__u64 m, first, second;

	if (!find_own(w, &m) || !read_user(m + GO_M_CURG_OLD, &first) || !read_user(m + GO_M_CURG, &second))
		return GO_LOST;
	*old = first && first != w->go && is_run_by(first, m);
	*g = *old ? first : second;
	if (*old || (second && second != w->go && is_run_by(second, m)))
		return GO_FOUND;
	/* In both layouts the first is 0 when there is none; in the old one the other is a function. */
	return first ? GO_LOST : GO_LEFT;
}

/*
 * Goes to where the goroutine was left; with pc and link register for `morestack`. GO_LEFT: fp is what may be a
 * function, for the caller to find out, as functions that call each other share a small stack.
 */
__attribute__((noinline)) int go_to_saved(struct walk *w, int morestack)
{
	__u64 g = 0, sp, pc, lr = 0, fp = 0;
	bool old = false;
	int found = w ? find_goroutine(w, &g, &old) : GO_LOST;

	if (!w || found == GO_LOST)
		return w ? end(w, OFFCPU_END_SWITCHED) : GO_LOST;
	if (found == GO_LEFT) {
		w->fp = g;
		return GO_LEFT;
	}
	if (!read_user(g + GO_G_SP, &sp) || !is_on_stack(g, sp) || !read_user(g + (old ? GO_G_FP_OLD : GO_G_FP), &fp) ||
	    !read_user(g + (old ? GO_G_LR_OLD : GO_G_LR), &lr) || !read_user(g + GO_G_PC, &pc))
		return end(w, OFFCPU_END_SWITCHED);
	w->sp = sp;
	w->fp = fp;
	w->go = g;
	w->has_fp = 1;
	w->found = w->sp_is_bound = 0;
	if (!morestack)
		return GO_FOUND;
	w->pc = pc;
	w->lr = lr;
	w->has_lr = 1;
	w->exact = RESUMES;
	return GO_FOUND;
}

static bool step_to_saved(struct walk *w, bool morestack)
{
	int found = go_to_saved(w, morestack);

	if (found == GO_LEFT)
		return end(w, !w->fp || is_function(w, w->fp) ? OFFCPU_END_COMPLETE : OFFCPU_END_SWITCHED);
	return found == GO_FOUND;
}

static bool is_goroutine(__u64 g)
{
	__u64 m, curg;

	if (!read_user(g + GO_G_M, &m))
		return false;
	return (read_user(m + GO_M_CURG_OLD, &curg) && curg == g) || (read_user(m + GO_M_CURG, &curg) && curg == g);
}

/* Goes to where asmcgocall was called, which keeps the goroutine and its depth at these offsets. */
__attribute__((noinline)) int go_to_kept(struct walk *w, __u32 goroutine, __u32 depth)
{
	__u64 g, below, high, sp;

	if (!w || !read_user(w->sp + goroutine, &g) || !read_user(w->sp + depth, &below))
		return 0;
	sp = below;
	if (!g) {
		if (sp <= w->sp || sp - w->sp > GO_C_NEAR)
			return 0;
	} else {
		if (!is_goroutine(g) || !read_user(g + GO_G_STACK_HIGH, &high) || !is_on_stack(g, high - below))
			return 0;
		sp = high - below;
		w->go = g;
	}
	w->sp = sp;
	w->has_fp = w->found = w->sp_is_bound = 0;
	return 1;
}

/*
 * From a goroutine's stack to where C, which is on the thread's own, has called Go: the thread's own goroutine has the sp of
 * the innermost such call, and that is where the one outside of it is kept. Before the stack is left nothing is to be done.
 */
__attribute__((noinline)) int go_to_callback(struct walk *w)
{
	const __u32 saved = HAS_LINK ? GO_ARM_CALLBACK_SAVED : GO_X86_CALLBACK_SAVED;
	__u64 m, g0, sp;

	if (!w || !read_user(w->go + GO_G_M, &m) || !read_user(m + GO_M_G0, &g0) || !is_run_by(g0, m))
		return 0;
	if (w->go == g0 || !is_on_stack(w->go, w->sp))
		return 1;
	sp = w->go_outer;
	if ((!sp && !read_user(g0 + GO_G_SP, &sp)) || !read_user(sp + saved, &w->go_outer) || w->go_outer < sp)
		return 0;
	w->sp = sp;
	w->go = g0;
	w->found = w->sp_is_bound = 0;
	return 1;
}

static bool go_to_caller_of_c(struct walk *w)
{
#if defined(__TARGET_ARCH_x86)
	return go_to_kept(w, GO_X86_C_GOROUTINE_OLD, GO_X86_C_DEPTH_OLD) || go_to_kept(w, GO_X86_C_GOROUTINE, GO_X86_C_DEPTH);
#else
	return go_to_kept(w, GO_ARM_C_GOROUTINE, GO_ARM_C_DEPTH);
#endif
}

#endif
