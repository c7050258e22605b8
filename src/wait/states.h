/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_STATES_H
#define STAKEOUT_WAIT_STATES_H

#include "model/mem.h"
#include "model/trace.h"

/* What a thread waits for that is neither a lock in memory nor a descriptor. Each sets t->wait and returns true if it is such a thing. */

/* By its state and by the functions of the kernel that it is in: comes before all else. */
bool state_wait_by_kernel(struct trace_thread *t);

/* By its system call: children, time, signals, objects of System V. `mem` is what was copied of the thread. */
bool state_wait_by_call(struct trace_thread *t, struct mem *mem);

#endif
