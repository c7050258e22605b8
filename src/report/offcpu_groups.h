/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_GROUPS_H
#define STAKEOUT_REPORT_OFFCPU_GROUPS_H

#include "model/offcpu.h"

/* The rows of a group that have something in common. */
struct offcpu_part {
	const struct offcpu_row *row; /* the heaviest of them */
	struct offcpu_sum sum;
};

/*
 * Rows that differ only in the thread or its waker: to the reader they are one stack. Processes forked from one another
 * can share user stacks; rows without one, and rows of whole processes, are grouped only within a process. Threads that
 * are idle there and those that are not form two groups. A thread can be preempted anywhere: stacks of preempted
 * threads are grouped if they have the same functions, unless exact stacks are asked for.
 */
struct offcpu_group {
	const struct offcpu_row *row; /* the heaviest */
	size_t nrows;
	size_t nplaces; /* different stacks, by address */
	struct offcpu_sum sum;
	struct offcpu_quantiles quantiles;
	bool idle;  /* either all rows are idle or none is */
	bool alike; /* all threads waited about equally long: then they are sorted by tid, else the heaviest first */
	const struct offcpu_part *threads; /* borrowed from the groups */
	size_t nthreads;
	size_t nprocesses;                /* that these threads belong to */
	const struct offcpu_member *members; /* of rows of programs: their processes, the heaviest first; borrowed too */
	size_t nmembers;
	const struct offcpu_part *wakers; /* the heaviest first; one may stand for rows without a waker; borrowed too */
	size_t nwakers;
};

/* The heaviest first, but idle ones last. */
struct offcpu_groups {
	VEC_FIELDS(struct offcpu_group);
	struct offcpu_part *threads, *wakers;
	struct offcpu_member *members;
};

/* Groups the rows of a profile, which have to be in order. False when memory is exhausted. */
bool offcpu_groups_find(struct offcpu_groups *groups, const struct offcpu_profile *profile, bool exact);
void offcpu_groups_deinit(struct offcpu_groups *groups);

#endif
