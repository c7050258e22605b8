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
 * Rows that differ only in the thread, or in who woke it: for a reader they are one stack. Processes that were forked
 * from one another can share user stacks; rows without one, and those of whole processes, are put together within a
 * process only. Threads that are idle there and others are two groups. A thread is preempted anywhere in what it does:
 * such stacks are one if they are of the same functions, unless exact ones are asked for.
 */
struct offcpu_group {
	const struct offcpu_row *row; /* the heaviest */
	size_t nrows;
	size_t nplaces; /* stacks by address */
	struct offcpu_sum sum;
	bool idle;  /* all of them are, or none is */
	bool alike; /* all threads waited about equally long: they are by number then, else the heaviest first */
	const struct offcpu_part *threads; /* borrowed from the groups */
	size_t nthreads;
	size_t nprocesses;                /* that these are of */
	const struct offcpu_part *wakers; /* the heaviest first; one is of rows without a waker; borrowed likewise */
	size_t nwakers;
};

/* The heaviest first, but those that are idle last. */
struct offcpu_groups {
	VEC_FIELDS(struct offcpu_group);
	struct offcpu_part *threads, *wakers;
};

/* Groups the rows of a profile, which are in order. False when memory is exhausted. */
bool offcpu_groups_find(struct offcpu_groups *groups, const struct offcpu_profile *profile, bool exact);
void offcpu_groups_deinit(struct offcpu_groups *groups);

#endif
