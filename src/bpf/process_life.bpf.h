/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_PROCESS_LIFE_H
#define STAKEOUT_BPF_PROCESS_LIFE_H

/* Processes are made, execute programs and end: what is known of them comes and goes with that, and the loader is told. */

#include "bpf/take_stack.bpf.h"
#include "bpf/watched.bpf.h"

const volatile bool want_children; /* set by the loader */

static void tell(__u32 kind, __u32 tgid)
{
	struct offcpu_process record = {.kind = kind, .tgid = tgid};

	if (bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP))
		lose(OFFCPU_LOST_REQUESTS);
}

/* A child has the memory of its parent, until it executes something. */
static void copy_runtimes(__u32 tgid, __u32 new_tgid)
{
	struct offcpu_runtime *known = bpf_map_lookup_elem(&runtimes, &tgid);

	if (known)
		bpf_map_update_elem(&runtimes, &new_tgid, known, 0);
	else
		bpf_map_delete_elem(&runtimes, &new_tgid);
}

/*
 * A new process may have the pid of one that has ended. It has its parent's memory, and so its tables, until it calls
 * exec: short-lived children would never get any otherwise.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = process_of(parent), new_tgid = process_of(child);
	struct offcpu_maps *maps, copy;
	__u8 target = OFFCPU_TARGET_UNSEEN;

	if (child->pid != child->tgid || !new_tgid) { /* a thread: make room while no scheduler lock is held */
		if (is_watched(child))
			bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		return 0;
	}
	bpf_map_delete_elem(&requested, &new_tgid);
	bpf_map_delete_elem(&looks, &new_tgid);
	copy_runtimes(tgid, new_tgid);
	if (!all_processes) {
		if (!want_children || !bpf_map_lookup_elem(&targets, &tgid)) {
			bpf_map_delete_elem(&targets, &new_tgid);
			bpf_map_delete_elem(&processes, &new_tgid); /* of a waker that had this pid before */
			return 0;
		}
		if (bpf_map_update_elem(&targets, &new_tgid, &target, 0))
			lose(OFFCPU_LOST_PROCESSES);
	}
	maps = bpf_map_lookup_elem(&processes, &tgid);
	if (maps) {
		copy = *maps;
		bpf_map_update_elem(&processes, &new_tgid, &copy, 0);
	} else {
		bpf_map_delete_elem(&processes, &new_tgid);
	}
	bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

/* What is known of the program that a process executed until now. */
static void forget_program(__u32 tgid)
{
	bpf_map_delete_elem(&processes, &tgid);
	bpf_map_delete_elem(&requested, &tgid);
	bpf_map_delete_elem(&looks, &tgid);
	bpf_map_delete_elem(&runtimes, &tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	__u32 tgid = process_of(task);

	forget_program(tgid); /* even of a waker that is not watched */
	if (is_watched(task))
		tell(OFFCPU_EXEC, tgid);
	return 0;
}

/*
 * The exiting thread is no longer counted as live. If two exit at the same time both may think they are the last; that
 * does no harm. No thread runs its code any more, but it is a target until it is gone: see end_thread().
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct thread_state *s = find_state(task);
	__u32 tgid = process_of(task);

	if (s) {
		s->tgid = tgid;
		s->tid = number_of(task);
	}
	if (BPF_CORE_READ_BITFIELD_PROBED(signal, live.counter) != 0)
		return 0;
	forget_program(tgid);
	if (is_watched(task))
		tell(OFFCPU_EXIT, tgid);
	return 0;
}

#endif
