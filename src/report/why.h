/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WHY_H
#define STAKEOUT_REPORT_WHY_H

#include "model/deadlock.h"

/*
 * Threads that wait for the same, or each for one of its own, of which it is not recorded who has it, in the same place, as those of a pool may:
 * members[first] to members[first + count - 1]; those that wait for the same are neighbours.
 */
struct why_group {
	size_t first;
	size_t count;
	unsigned chain; /* how many threads wait one for the other behind it */
};

/* The threads of some traces that are in no deadlock, by what they wait for: the longest chains first, then the most threads. */
struct why_groups {
	VEC_FIELDS(struct why_group);
	const struct trace_thread **members;
	size_t n;
};

/*
 * `folds`: also those are one group that wait in the same place for locks of which each has another owner, if these owners do the same: buckets of a
 * hash table, accounts … False when memory is exhausted.
 */
bool why_groups_init(struct why_groups *groups, const struct trace *const *traces, size_t ntraces, const struct deadlocks *deadlocks, bool folds);
void why_groups_deinit(struct why_groups *groups);

/* What nobody sees, because of the languages that the programs are written in; NULL: there is nothing to say. */
const char *why_limits(const struct trace *const *traces, size_t n);

#endif
