/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_DEADLOCK_H
#define STAKEOUT_MODEL_DEADLOCK_H

#include "model/trace.h"

/* Threads of which each waits for the next, and the last for the first: none of them will ever go on. */
struct deadlock {
	VEC_FIELDS(const struct trace_thread *);
};

struct deadlocks {
	VEC_FIELDS(struct deadlock);
	bool maybe_more; /* others wait for each other, too, but not every wait was proved for one instant */
};

/* NULL: in none. */
const struct deadlock *deadlocks_with(const struct deadlocks *deadlocks, const struct trace_thread *thread);

void deadlocks_deinit(struct deadlocks *deadlocks);

#endif
