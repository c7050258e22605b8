/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_LOCKS_H
#define STAKEOUT_WAIT_LOCKS_H

#include "model/trace.h"

/*
 * From a futex that a thread waits for to the lock that it is part of, and to its owner. Memory that cannot be a lock is not taken
 * for one: then it is a futex.
 */

/* A thread that waits for a futex: the arguments of its system call, and the memory there, from the futex on. */
struct futex_wait {
	const struct trace *trace; /* that has the thread */
	const struct trace_thread *thread;
	uint64_t address;
	uint32_t op, value;
	uint32_t words[16];
	unsigned nwords; /* that could be read */
};

/* Fills kind, address, word, holder, owner (as the process itself numbers it) and shared. */
void lock_of_futex(const struct futex_wait *f, struct wait *out);

#endif
