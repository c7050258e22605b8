/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_PYTHON_STACK_H
#define STAKEOUT_BPF_PYTHON_STACK_H

/*
 * The Python frames of the current thread, when its native frames are known: as runtime/python/chain.c and place.c have them,
 * from which the names are the same.
 */

#include "bpf/runtimes.bpf.h"
#include "bpf/thread_state.bpf.h"

enum { PY_MAX_TSTATES = 4096, PY_MAX_STEPS = 6 * OFFCPU_RUNTIME_FRAMES };
enum { PY_SEARCHES = 4, PY_SEARCH_AGAIN_NS = 100000000 };

static bool read_python(__u64 address, __u64 *out)
{
	return bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
}

/* A thread's number in the innermost of its pid namespaces, which is how it knows itself. */
static __u32 own_number_of(struct task_struct *task)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid), *shifted; /* read so, an address can be calculated with */
	__u32 depth = pid ? BPF_CORE_READ(pid, level) : 0;

	if (!depth || depth > MAX_DEPTH)
		return task->pid;
	shifted = shift(pid, depth);
	return BPF_CORE_READ_BITFIELD_PROBED(shifted, numbers[0].nr);
}

/* Whether a thread state is that of the thread with this number: see find_forked() in runtime/python/threads.c. */
static bool is_tstate_of(const struct offcpu_python *at, __u64 tstate, __u32 own)
{
	__u64 value;
	__u32 tid;

	if (at->tstate_native && read_python(tstate + at->tstate_native, &value) && value == own)
		return true;
	return at->pthread_tid && read_python(tstate + at->tstate_thread, &value) &&
	       bpf_probe_read_user(&tid, sizeof(tid), (void *)(value + at->pthread_tid)) == 0 && tid == own;
}

/* One step along the lists of interpreters and of the thread states of each. */
static long search_tstate(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);
	struct python_walk *p;

	if (!scratch)
		return 1;
	p = &scratch->python;
	if (!p->tstate) {
		if (!p->interp)
			return 1;
		if (!read_python(p->interp + p->at.interp_threads, &p->tstate) ||
		    !read_python(p->interp + p->at.interp_next, &p->interp))
			p->interp = p->tstate = 0;
		return 0;
	}
	if (is_tstate_of(&p->at, p->tstate, p->own))
		return 1;
	if (!read_python(p->tstate + p->at.tstate_next, &p->tstate))
		p->tstate = 0;
	return 0;
}

/* Whether to look for the thread state of a thread of which none is known: it may never have one. */
static bool is_search_due(struct thread_state *s)
{
	__u64 now;

	if (!s)
		return true;
	now = bpf_ktime_get_ns();
	if (s->searches >= PY_SEARCHES && now - s->searched_ns < PY_SEARCH_AGAIN_NS)
		return false;
	if (s->searches < PY_SEARCHES)
		s->searches++;
	s->searched_ns = now;
	return true;
}

/* Where the chain of frames begins. */
static bool find_first_frame(struct python_walk *p)
{
	if (!read_python(p->tstate + p->at.tstate_frame, &p->frame))
		return false;
	if (p->at.frames == PY_FRAMES_CFRAME)
		p->cframe = p->frame;
	if (p->at.frames == PY_FRAMES_CFRAME || p->at.cframe_previous)
		return read_python(p->frame + p->at.cframe_frame, &p->frame);
	return true;
}

/* The thread state of the current thread, in p->tstate, and its first frame. False: it has none. */
static __attribute__((noinline)) int find_tstate(struct python_walk *p, __u32 which)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct thread_state *s = bpf_task_storage_get(&threads, task, 0, 0);

	p->own = own_number_of(task);
	p->tstate = s ? s->tstate : 0;
	if (p->tstate && is_tstate_of(&p->at, p->tstate, p->own) && find_first_frame(p) && p->frame)
		return 1;
	/* It may have been given up, and another one made: C code that calls Python again and again does that. */
	p->tstate = 0;
	if (!is_search_due(s) || !read_python(p->at.interpreters, &p->interp))
		return 0;
	bpf_loop(PY_MAX_TSTATES, search_tstate, &which, 0);
	if (p->tstate && !is_tstate_of(&p->at, p->tstate, p->own))
		p->tstate = 0;
	if (s)
		s->tstate = p->tstate;
	return p->tstate && find_first_frame(p);
}

/* The native frame that a cursor stands at is one of the interpreter's loop. */
static bool is_eval(const struct stack_scratch *scratch, const struct python_walk *p)
{
	__u32 at = scratch->head.nkernel + p->cursor;
	__u64 pc;

	if (at >= OFFCPU_FRAMES)
		return false;
	pc = scratch->frames[at] & ~OFFCPU_MARKS;
	return pc >= p->at.eval_start && pc < p->at.eval_end;
}

/* The native frame that a cursor stands at is the one of the activation which was read last. */
static bool is_place(const struct stack_scratch *scratch, const struct python_walk *p)
{
	__u32 i = p->cursor;

	if (p->at.frames == PY_FRAMES_OBJECTS)
		return is_eval(scratch, p);
	return i + 1 < OFFCPU_USER_FRAMES && i + 1 < scratch->head.nuser && scratch->sps[i] <= p->anchor &&
	       p->anchor < scratch->sps[i + 1];
}

static long fail(struct stack_scratch *scratch, __u32 why)
{
	drop_runtime_frames(scratch, scratch->python.first, scratch->python.before, why);
	return 1;
}

static __u64 word_of(const struct python_walk *p, __u32 offset)
{
	return *(const __u64 *)&p->bytes[offset & (OFFCPU_PYTHON_HEAD - 8)];
}

/* Appends a frame; there must be room for the end of the activation, too. What was read of the frame is lost. */
static bool add_code(struct stack_scratch *scratch, struct python_walk *p, __u32 raw, __u32 runtime)
{
	__u64 code = p->code;
	__u32 version = 0;
	__u64 hash = 0;

	if (scratch->head.nruntime + 1 >= OFFCPU_RUNTIME_FRAMES)
		return false;
	if (bpf_probe_read_user(p->bytes, p->at.code_size & (OFFCPU_PYTHON_HEAD - 1), (void *)(code + p->at.code_from)) == 0 &&
	    (!p->at.by_name || read_python(word_of(p, p->at.code_words[0]) + OFFCPU_PYTHON_STR_HASH, &hash))) {
		version = offcpu_python_version(0, hash);
		for (int i = 0; i < OFFCPU_PYTHON_WORDS; i++)
			version = offcpu_python_version(version, word_of(p, p->at.code_words[i]));
	}
	return add_runtime_frame(scratch, code, p->instr, raw, runtime, version);
}

/* Looks at one more native frame for the activation that was read. */
static long place_activation(struct stack_scratch *scratch, struct python_walk *p)
{
	__u32 nuser = scratch->head.nuser;

	if (p->cursor < nuser && p->cursor < OFFCPU_USER_FRAMES && !is_place(scratch, p)) {
		p->cursor++;
		return 0;
	}
	if (p->cursor >= nuser && scratch->head.user_end == OFFCPU_END_COMPLETE)
		return fail(scratch, OFFCPU_RUNTIME_MISMATCH);
	p->placing = 0;
	if (p->at.frames != PY_FRAMES_OBJECTS)
		add_runtime_frame(scratch, 0, scratch->head.copy ? p->anchor : 0, p->cursor, OFFCPU_PYTHON, 0);
	else if (!add_code(scratch, p, p->cursor, OFFCPU_PYTHON_OBJECT))
		scratch->head.runtime_end = OFFCPU_RUNTIME_DEPTH;
	p->cursor++;
	return scratch->head.runtime_end != OFFCPU_RUNTIME_NONE;
}

/* 3.11: the activation that is further out has the frame that this one was called by. */
static bool next_cframe(struct python_walk *p)
{
	__u64 frame;

	if (!read_python(p->cframe + p->at.cframe_previous, &p->cframe))
		return false;
	if (!p->cframe)
		return !p->frame;
	return read_python(p->cframe + p->at.cframe_frame, &frame) && (!p->frame || frame == p->frame);
}

/*
 * A native frame of the interpreter that is none of this chain's is another's, and then so may be all. Since 3.11 that is told by
 * where they are; but an activation that is just begun, and has no caller, may only not say yet which one it follows.
 */
static long end_python(struct stack_scratch *scratch, struct python_walk *p)
{
	if (!p->ending && p->at.frames != PY_FRAMES_OBJECTS && p->cursor != 1)
		return 1;
	p->ending = 1;
	if (p->cursor >= scratch->head.nuser)
		return 1;
	if (is_eval(scratch, p))
		return fail(scratch, OFFCPU_RUNTIME_MISMATCH);
	p->cursor++;
	return 0;
}

/* Reads one more frame, or looks for the place of those that were read. */
static long walk_python(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);
	struct python_walk *p;
	__u64 frame;
	__u8 owner;

	if (!scratch)
		return 1;
	p = &scratch->python;
	if (p->placing)
		return place_activation(scratch, p);
	frame = p->frame;
	if (!frame)
		return end_python(scratch, p);
	if (bpf_probe_read_user(p->bytes, p->at.head & (OFFCPU_PYTHON_HEAD - 1), (void *)frame))
		return fail(scratch, OFFCPU_RUNTIME_FAULT);
	p->code = word_of(p, p->at.frame_code) & ~3ull; /* tagged since 3.14 */
	p->instr = word_of(p, p->at.frame_instr);
	owner = p->bytes[p->at.frame_owner & (OFFCPU_PYTHON_HEAD - 1)];
	p->frame = word_of(p, p->at.frame_previous) & ~3ull;
	if (p->at.frames == PY_FRAMES_OBJECTS) {
		p->instr = (__u32)p->instr;
		p->placing = 1;
		return 0;
	}
	if (p->at.frames == PY_FRAMES_SHIM && owner >= PY_OWNED_BY_C_STACK) {
		p->anchor = frame;
		p->placing = p->unplaced;
		p->unplaced = 0;
		return 0;
	}
	/* The walk goes on to the end of the activation in any case. */
	if (!add_code(scratch, p, 0, OFFCPU_PYTHON))
		scratch->head.runtime_end = OFFCPU_RUNTIME_DEPTH;
	p->unplaced = 1;
	if (p->at.frames == PY_FRAMES_CFRAME && owner) {
		p->anchor = p->cframe;
		p->placing = 1;
		p->unplaced = 0;
		if (!next_cframe(p))
			return fail(scratch, OFFCPU_RUNTIME_MISMATCH);
	}
	return 0;
}

__attribute__((noinline)) int take_python_frames(__u32 tgid, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct offcpu_runtime *known = bpf_map_lookup_elem(&runtimes, &tgid);
	struct python_walk *p;

	if (!want_user || !scratch || !known || !known->python.interpreters)
		return 0;
	p = &scratch->python;
	p->at = known->python;
	p->cursor = p->placing = p->unplaced = p->ending = 0;
	p->first = scratch->head.nruntime;
	p->before = scratch->runtime_id;
	if (!find_tstate(p, which))
		return 0;
	bpf_loop(PY_MAX_STEPS, walk_python, &which, 0);
	if (!p->unplaced && !p->placing)
		return 0;
	if (p->frame || p->placing) { /* more steps than are taken here */
		scratch->head.runtime_end = OFFCPU_RUNTIME_DEPTH;
		add_runtime_frame(scratch, 0, 0, scratch->head.nuser, OFFCPU_PYTHON, 0);
	} else {
		fail(scratch, OFFCPU_RUNTIME_MISMATCH);
	}
	return 0;
}

#endif
