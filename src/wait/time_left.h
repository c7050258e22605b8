/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_TIME_LEFT_H
#define STAKEOUT_WAIT_TIME_LEFT_H

#include "model/mem.h"
#include "model/trace.h"

/* The time limit of the system call that a thread is blocked in, whatever it waits for there. */
struct time_limit {
	bool limited; /* it has one */
	enum wait_left left;
	int64_t left_ns; /* not below 0 */
};

/* `mem` is what was copied of the thread. */
struct time_limit time_limit_of(const struct trace_thread *t, struct mem *mem);

#endif
