/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_GROUP_H
#define STAKEOUT_REPORT_GROUP_H

#include "base/map.h"
#include "model/trace.h"

/* Threads that are shown as one block: members[first] to members[first + count - 1]. */
struct group {
	size_t first;
	size_t count;
};

/*
 * The threads of one or more traces in the order in which a reader wants them: those that run, then those that hang in the kernel,
 * then the main thread, then the rest with unusual stacks before idle pools, and finally those that have ended.
 */
struct groups {
	VEC_FIELDS(struct group);
	const struct trace_thread **members;
	struct u64map same; /* for stacks of several processes: the first one with the same functions at the same places */
};

/* With `merge`, threads in the same state, the same system call and the same stacks form one group. */
int groups_init(struct groups *groups, const struct trace *const *traces, size_t ntraces, bool merge);
void groups_deinit(struct groups *groups);

#endif
