/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_IDLE_H
#define STAKEOUT_OFFCPU_IDLE_H

#include "model/offcpu.h"

/*
 * Marks the rows in which threads are idle, and fills in the threads' idle time. False when memory is exhausted.
 *
 * A thread is idle where its sleeps for work, all with the same functions on their user stacks, are nearly all of the
 * recording, without the time for which it was awake and had no CPU. A sleep is for work when it is for events, a
 * connection, input other than from a socket (which may be the answer to a question), a signal, a condition variable,
 * or a semaphore that another thread of the process waits for with the same functions, and no function on the user
 * stack has to do with a lock, with sleeping for a time or with waiting for another thread. When the stacks do not
 * tell, it is not for work: idle rows can be hidden, and a hang must not be. Nor is a row of a whole process (tid 0)
 * ever marked, as it does not say how many threads its time belongs to.
 */
bool offcpu_mark_idle(struct offcpu_profile *profile);

static inline bool offcpu_is_nearly_all(uint64_t part, uint64_t whole)
{
	return part && part >= whole - whole / 5;
}

#endif
