/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_WINDOW_H
#define STAKEOUT_CAPTURE_WINDOW_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The quiet window: for some microseconds nobody else runs on some CPUs. One thread of ours with real-time priority is pinned to
 * each and spins, all of them woken together, while another one, the leader, does the work on a CPU of its own. Whoever ran there
 * gets the CPU back afterwards, as after an interrupt.
 *
 * Each leaves by the clock, whatever becomes of the leader. That nobody ran is not promised: a thread of a higher class, or one
 * that the kernel does not preempt, may keep its CPU. The work has to check what it has read.
 */

struct window_plan {
	cpu_set_t cpus;   /* to be taken; the leader's own is, in any case */
	int priority;     /* 1 to 99 */
	uint64_t most_ns; /* how long it lasts at most */
	bool lingers;     /* for tests: it lasts as long as it may */
	/*
	 * In the leader. Until `until` (CLOCK_MONOTONIC) the CPUs stay taken. It should neither allocate, nor fault, nor wait. False: it
	 * was abandoned.
	 */
	bool (*work)(void *arg, uint64_t opened_ns, uint64_t until);
	void *arg;
};

struct window_result {
	uint64_t length_ns; /* from waking the helpers to letting them go */
	unsigned taken;	    /* CPUs, with the leader's */
};

/*
 * 0, or -EPERM without the right to that priority, or -EAGAIN when threads cannot be made. -ETIMEDOUT: the work stands between
 * window_block() and window_go_on(), and was abandoned there: the memory that is being written belongs to it for ever.
 */
int window_run(const struct window_plan *plan, struct window_result *out);

/*
 * In the work: does something on all CPUs that are taken, each with another share of `of`; the leader's is 0. When the clock ends the
 * window, shares that nobody has begun are left undone. A part returns false when it was abandoned, and so does this: then the work
 * is to end at once.
 */
bool window_share(bool (*part)(void *arg, unsigned share, unsigned of), void *arg);

/*
 * In the work, and in shares of it, around what may never come back. False: it was abandoned meanwhile, and nothing may be touched
 * any more.
 */
void window_block(void);
bool window_go_on(void);

#endif
