/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_SWITCH_CLOCK_BPF_H
#define STAKEOUT_BPF_SWITCH_CLOCK_BPF_H

/*
 * What time it is when a thread leaves its CPU or has got one. A look at the clock costs as much as all the rest of what is
 * done at most switches, but the scheduler has just looked, and its run queue says when. By how much the monotonic clock is
 * ahead of that one is found out at most once in a millisecond on each CPU.
 */

#include "bpf/switch_clock.h"

/* Set by the loader. */
const volatile __u64 min_ns;

enum { EXACT_BELOW_NS = 100000 }; /* waits that may be as short as that are measured by the clock itself */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_clock);
} switch_clocks SEC(".maps");

static __attribute__((noinline)) __u64 compare_clocks(struct switch_clock *c, __u64 now)
{
	__u64 ns = bpf_ktime_get_ns();

	switch_clock_compare(c, now, ns);
	return ns;
}

/* 0: it is not known, or not to be used. */
static __always_inline __u64 scheduler_clock(struct task_struct *task)
{
	return min_ns >= EXACT_BELOW_NS && bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(task->se.cfs_rq->rq)
		       ? task->se.cfs_rq->rq->clock
		       : 0;
}

static __always_inline __u64 time_at(struct switch_clock *c, struct task_struct *task)
{
	__u64 now = scheduler_clock(task);

	if (!now)
		return bpf_ktime_get_ns();
	return switch_clock_is_due(c, now) && c->compared != now ? compare_clocks(c, now) : switch_clock_at(c, now);
}

/* Before the stack of `prev` is taken: what that takes would seem to be between the two clocks. time_at() does not compare again then. */
static __always_inline void compare_ahead(struct task_struct *prev)
{
	__u32 key = 0;
	struct switch_clock *c = bpf_map_lookup_elem(&switch_clocks, &key);
	__u64 now = scheduler_clock(prev);

	if (c && now && switch_clock_is_due(c, now))
		compare_clocks(c, now);
}

/* When `prev` leaves its CPU; kept for `next`, whose program will run as soon as it has it. */
static __always_inline __u64 time_of_leaving(struct task_struct *prev, struct task_struct *next)
{
	__u32 key = 0;
	struct switch_clock *c = bpf_map_lookup_elem(&switch_clocks, &key);

	if (!c)
		return bpf_ktime_get_ns();
	c->ns = time_at(c, prev);
	c->pid = next->pid;
	return c->ns;
}

/* When `task` got the CPU that this program runs on. */
static __always_inline __u64 time_of_return(struct task_struct *task)
{
	__u32 key = 0, pid;
	struct switch_clock *c = bpf_map_lookup_elem(&switch_clocks, &key);

	if (!c)
		return bpf_ktime_get_ns();
	pid = c->pid;
	c->pid = 0;
	return pid == task->pid ? c->ns : time_at(c, task);
}

#endif
