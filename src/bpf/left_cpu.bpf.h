/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_LEFT_CPU_H
#define STAKEOUT_BPF_LEFT_CPU_H

#include "bpf/task_record.h"

/*
 * When a thread last left its CPU: the scheduler notes when it got there, and how long it has run since. Only the fair
 * classes keep the second figure for each turn; for the others the turn counts as nothing. All of it is in the
 * scheduler's own clock, so "now" is taken from the reader, which is running.
 */
struct cpu_turn {
	__u64 arrived; /* 0: this kernel does not keep it, or the thread has not run yet */
	__u64 ran;
	__u32 policy;
};

static __u32 is_fair(__u32 policy)
{
	enum { SCHED_NORMAL = 0, SCHED_BATCH = 3, SCHED_IDLE = 5 };

	return policy == SCHED_NORMAL || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

static __u64 left_cpu(struct cpu_turn turn)
{
	return is_fair(turn.policy) ? turn.arrived + turn.ran : turn.arrived;
}

static void set_off_cpu_time(struct task_record *record, struct cpu_turn turn, struct cpu_turn reader)
{
	__u64 left = left_cpu(turn), now = left_cpu(reader);

	if (!turn.arrived)
		return;
	record->off_cpu_ns = now > left ? now - left : 0;
	record->flags |= TASK_HAS_OFF_CPU;
}

#endif
