/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_WATCHED_H
#define STAKEOUT_BPF_WATCHED_H

/* Whose waits are recorded. */

#include "bpf/thread_state.bpf.h"

/* Set by the loader. */
const volatile __u32 self_tgid; /* the loader itself, which is not watched, and neither are its helpers */
const volatile bool all_processes;

/* The processes to watch, unless all are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8); /* enum offcpu_target */
} targets SEC(".maps");

static __attribute__((noinline)) __u32 process_that_was(struct task_struct *task)
{
	struct thread_state *s = find_state(task);

	return s ? s->tgid : 0;
}

/* As process_of(), but also for an exiting thread. */
static __always_inline __u32 target_of(struct task_struct *task)
{
	__u32 tgid = process_of(task);

	return tgid ? tgid : process_that_was(task);
}

/* A child of the loader that sends no signal when it ends: see target/helper.c. */
static __always_inline bool is_helper(struct task_struct *task)
{
	return !task->exit_signal && process_of(task->real_parent) == self_tgid;
}

static bool is_watched(struct task_struct *task)
{
	__u32 tgid;

	if (task->flags & PF_KTHREAD || !task->pid)
		return false;
	tgid = target_of(task);
	if (all_processes)
		return tgid && tgid != self_tgid && !is_helper(task);
	return bpf_map_lookup_elem(&targets, &tgid);
}

#endif
