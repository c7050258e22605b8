/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_TAKE_STACK_H
#define STAKEOUT_BPF_TAKE_STACK_H

/* Takes the stacks of the current thread, and sends those that the loader does not have. */

#include "bpf/ring.bpf.h"
#include "bpf/user_stack.bpf.h"
#include "bpf/found_code.bpf.h"
#include "bpf/stack_copy.bpf.h"
#include "bpf/python_stack.bpf.h"
#include "bpf/v8_stack.bpf.h"

enum { ASK_AGAIN_NS = 200000000, EEXIST = 17 };

/* Set by the loader. */
const volatile bool can_kernel = true; /* the kernel allows kernel stacks, which wakers always have */
const volatile bool want_kernel = true;
const volatile bool want_copies; /* stacks may be walked later */

/* Stacks that the loader has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 18);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct offcpu_stack_id);
	__type(value, __u8);
} known_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);   /* tgid */
	__type(value, __u64); /* when the answer was that nothing is new; 0: no answer yet */
} requested SEC(".maps");

/*
 * Asks the loader for the tables of a process, only once until it answers; if nothing was new, it does not ask again
 * for a while.
 */
static void request_maps(__u32 tgid)
{
	struct offcpu_process record = {.kind = OFFCPU_NEED_MAPS, .tgid = tgid};
	__u64 *answered = bpf_map_lookup_elem(&requested, &tgid), none = 0;
	long rc;

	if (!tgid)
		return;
	if (answered) {
		if (!*answered || bpf_ktime_get_ns() - *answered < ASK_AGAIN_NS)
			return;
		*answered = 0;
	} else {
		rc = bpf_map_update_elem(&requested, &tgid, &none, BPF_NOEXIST);
		if (rc && rc != -EEXIST) /* another CPU was first */
			lose(OFFCPU_LOST_ASKED);
		if (rc)
			return;
	}
	if (bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP)) {
		lose(OFFCPU_LOST_REQUESTS);
		bpf_map_delete_elem(&requested, &tgid);
	}
}

/* The loader is told first: it has the set before the stacks that are walked with it. */
static bool tell_found_set(struct found *f, __u32 tgid)
{
	f->head.kind = OFFCPU_FOUND;
	f->head.tgid = tgid;
	if (f->head.count > OFFCPU_FOUND_MAPPINGS)
		return false;
	if (bpf_ringbuf_output(&ring, f, sizeof(f->head) + f->head.count * sizeof(f->mappings[0]), BPF_RB_NO_WAKEUP))
		return false;
	cache_set(f);
	return true;
}

static bool give_found_set(struct found *f, __u32 tgid)
{
	if (!f->is_shared && !tell_found_set(f, tgid))
		return false;
	f->look.set = f->maps.set;
	f->look.nsets++;
	bpf_map_update_elem(&looks, &tgid, &f->look, 0);
	return bpf_map_update_elem(&processes, &tgid, &f->maps, 0) == 0;
}

static int look_for_code(__u32 tgid, __u32 which, struct stack_scratch *scratch)
{
	struct found *f = bpf_map_lookup_elem(&found_scratches, &which);
	int found;

	if (!f || !tgid)
		return FOUND_NOTHING;
	found = find_code(tgid, scratch->head.set, which, missed_by(&scratch->walk));
	return found != FOUND_SET || give_found_set(f, tgid) ? found : FOUND_NOTHING;
}

/* Walks the user stack of the current thread. `may_look`: if need be by what is found to be mapped. */
static __always_inline void take_user_stack(struct task_struct *task, __u32 tgid, __u32 which, bool may_look,
					    struct stack_scratch *scratch)
{
	int found = FOUND_NOTHING;

	walk_user(tgid, which);
	if (scratch->head.user_end != OFFCPU_END_NO_TABLES)
		return;
	if (may_look)
		found = look_for_code(tgid, which, scratch);
	if (found == FOUND_SET)
		walk_user(tgid, which);
	if (scratch->head.user_end == OFFCPU_END_NO_TABLES && scratch->head.set)
		scratch->head.user_end = found == FOUND_NO_CODE ? OFFCPU_END_NOT_CODE : why_unknown(task, &scratch->walk);
	if (scratch->head.user_end == OFFCPU_END_NOT_CODE && scratch->head.nuser > 1 && !scratch->walk.exact)
		scratch->head.nuser--;
	if (may_look && want_copies && scratch->head.user_end == OFFCPU_END_NO_TABLES && tgid)
		scratch->head.copy = copy_stack(tgid, which, missed_by(&scratch->walk));
	if (scratch->head.user_end == OFFCPU_END_NO_TABLES || scratch->head.user_end == OFFCPU_END_MANY_MAPPINGS)
		request_maps(tgid);
}

/*
 * The id of a stack: a hash of its frames and of whatever else makes two stacks different. Processes share stacks,
 * since the meaning of a user address depends only on the set of mappings; but while that is unknown, the process may
 * give it one, and what a runtime has made is its process's own. Where a stack leads of which there is a copy is not known.
 */
__attribute__((noinline)) int hash_stack(struct stack_scratch *scratch, __u32 tgid)
{
	struct offcpu_stack_id id = {};
	__u32 total, own;

	if (!scratch)
		return 0;
	total = scratch->head.nkernel + scratch->head.nuser;
	mix_frame(&id, (__u64)(__u32)scratch->head.kernel_error << 32 | scratch->head.nkernel);
	mix_frame(&id, (__u64)scratch->head.set << 32 | scratch->head.user_end);
	own = scratch->head.user_end == OFFCPU_END_NO_TABLES || scratch->head.nruntime ? tgid : 0;
	mix_frame(&id, (__u64)scratch->head.copy << 32 | own);
	mix_frame(&id, scratch->runtime_id.low);
	mix_frame(&id, (__u64)scratch->head.runtime_end << 32 | scratch->head.nruntime);
	for (__u32 i = 0; i < OFFCPU_FRAMES && i < total; i++)
		mix_frame(&id, scratch->frames[i]);
	id.low |= 1; /* never 0: that is no stack */
	scratch->head.id = id;
	return 0;
}

/*
 * An exiting thread gives up its memory: what is mapped may be another process's. One that executes a program has lost the
 * old one's memory before it gets the registers to begin the new one with.
 */
static __always_inline bool has_user_stack(struct task_struct *task)
{
	return !(task->flags & (PF_KTHREAD | PF_EXITING)) && BPF_CORE_READ(task, mm, end_code);
}

/*
 * Takes the stacks of the current thread and leaves them in the scratch. Inlined: unwinding a frame of ours on the
 * kernel stack costs as much as several of the kernel's own, which have unwind tables.
 */
static __always_inline struct stack_scratch *take_stack(void *ctx, __u32 tgid, __u32 which, bool may_look)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct stack_scratch *scratch = get_scratch(which);

	if (!scratch)
		return 0;
	scratch->head = (struct offcpu_stack){.kind = OFFCPU_STACK, .tgid = tgid, .user_end = OFFCPU_END_NO_USER};
	scratch->runtime_id = (struct offcpu_stack_id){};
	if (want_kernel || (can_kernel && which == SCRATCH_WAKER)) {
		long len = bpf_get_stack(ctx, scratch->frames, OFFCPU_KERNEL_FRAMES * sizeof(__u64), 0);

		if (len < 0)
			scratch->head.kernel_error = (__s32)len;
		else
			scratch->head.nkernel = (__u32)len / sizeof(__u64);
	}
	if (scratch->head.nkernel > OFFCPU_KERNEL_FRAMES)
		return 0;
	if (want_user && has_user_stack(task))
		take_user_stack(task, tgid, which, may_look, scratch);
	if (scratch->head.nuser && scratch->walk.has_runtimes) {
		take_python_frames(tgid, which);
		take_v8_frames(tgid, which);
	}
	hash_stack(scratch, tgid);
	return scratch;
}

/* Sends a stack if the loader does not have it. False when there is no room. */
static bool send_stack(struct stack_scratch *scratch)
{
	__u32 total = scratch->head.nkernel + scratch->head.nuser, n = scratch->head.nruntime, size;
	__u8 one = 1;

	if (bpf_map_lookup_elem(&known_stacks, &scratch->head.id) || total > OFFCPU_FRAMES || n > OFFCPU_RUNTIME_FRAMES)
		return true;
	size = n * sizeof(scratch->runtime[0]);
	if (n)
		bpf_probe_read_kernel(&scratch->frames[total], size, scratch->runtime);
	size += sizeof(scratch->head) + total * sizeof(__u64);
	if (bpf_ringbuf_output(&ring, scratch, size, BPF_RB_NO_WAKEUP)) {
		lose(OFFCPU_LOST_STACKS);
		return false;
	}
	bpf_map_update_elem(&known_stacks, &scratch->head.id, &one, 0); /* if it is full, the stack is sent again */
	return true;
}

static bool is_same_stack(struct offcpu_stack_id a, struct offcpu_stack_id b)
{
	return a.low == b.low && a.high == b.high;
}

#endif
