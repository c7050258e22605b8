/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_STATES_H
#define STAKEOUT_WAIT_STATES_H

#include "model/mem.h"
#include "model/trace.h"

/* What a thread waits for that is neither a lock in memory nor a descriptor. Each sets t->wait and returns true if it is such a thing. */

/* What functions of the kernel tell. */
struct kernel_wait {
	const struct stack *kernel;
	char state;
	enum wait_kind kind;
	bool in_fault;
	const char *symbol; /* of the function that told it */
};

/* By its state and by the functions of the kernel that it is in: comes before all else. `last` is what was found last, at first all 0. */
bool state_wait_by_kernel(struct trace_thread *t, struct kernel_wait *last);

/* By its system call: children, time, signals, objects of System V. `mem` is what was copied of the thread. */
bool state_wait_by_call(struct trace_thread *t, struct mem *mem);

#endif
