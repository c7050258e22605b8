/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_LOCKS_H
#define STAKEOUT_WAIT_LOCKS_H

#include "model/trace.h"
#include "wait/lock_names.h"
#include "wait/threads.h"

/*
 * From a futex that a thread waits for to the lock that it is part of, and to its owner. Memory that cannot be a lock is not taken
 * for one: then it is a futex.
 */

/* A thread that waits for a futex: the arguments of its system call, and the memory there, from the futex on. */
struct futex_wait {
	const struct wait_threads *threads;
	const struct trace_thread *thread;
	uint64_t address;
	uint32_t op, value;
	uint32_t words[WAIT_BYTES / 4];
	unsigned nwords; /* that could be read */
	struct lock_names names;
	bool again;	 /* the words were read after the capture, before the last look at the threads */
};

/* A lock, and its owner, if that is a thread of the process. */
struct lock {
	enum wait_kind kind;
	uint64_t address, word; /* as in struct wait */
	enum wait_holder holder;
	uint32_t number; /* of the owner, as memory has it */
	const struct snap_thread *owner;
	struct mutex_attributes mutex;
	uint64_t count; /* how often the owner has taken it; 0: not known */
	bool shared;
	bool evident; /* that it is this lock, and its owner, is beyond doubt */
};

/* For what a library's locks have in common: the thread with this number has it. */
void lock_set_owner(const struct futex_wait *f, uint32_t number, struct lock *out);

struct lock lock_of_futex(const struct futex_wait *f);

/* A mutex that inherits priorities: by the word of its kind; and what its memory, which is `f->words`, tells of it. */
bool lock_is_pi_kind(uint32_t kind);
struct lock lock_of_pi_mutex(const struct futex_wait *f);

#endif
