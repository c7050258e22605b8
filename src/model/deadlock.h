/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_DEADLOCK_H
#define STAKEOUT_MODEL_DEADLOCK_H

#include "model/trace.h"

/* Threads of which each waits for the next, and the last for the first: none of them will ever go on. */
struct deadlock {
	VEC_FIELDS(const struct trace_thread *);
	bool likely; /* only that: of a lock of theirs it was inferred who has it */
};

/* Why it is not known whether threads that wait for each other will ever go on. */
enum deadlock_doubt {
	DOUBT_UNPROVED, /* not every wait was proved for one instant: another look may tell */
	DOUBT_LIMITS,	/* some sockets may have a time limit, which is not known */
	DOUBT_HANDLERS,	/* a signal handler may do something for them, or the kernel by an io_uring */
	DOUBT_STRANGERS, /* a process that could not be looked at may */
	DOUBT_BOTH,	/* a handler, an io_uring or such a process may */
};

struct deadlocks {
	VEC_FIELDS(struct deadlock);
	bool maybe_more; /* others wait for each other, too, but: */
	enum deadlock_doubt doubt;
};

/* Whether there are some, and some that are only likely. */
bool deadlocks_has_proved(const struct deadlocks *deadlocks);
bool deadlocks_has_likely(const struct deadlocks *deadlocks);

/* NULL: in none. */
const struct deadlock *deadlocks_with(const struct deadlocks *deadlocks, const struct trace_thread *thread);

/* A sentence on those that there may be more of; NULL: there are none. */
const char *deadlocks_doubt(const struct deadlocks *deadlocks);

void deadlocks_deinit(struct deadlocks *deadlocks);

#endif
