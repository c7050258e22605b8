/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_GROUPS_H
#define STAKEOUT_REPORT_OFFCPU_GROUPS_H

#include "model/offcpu.h"

/* Rows that differ only in who woke the thread, which for a reader are one stack with several wakers. */
struct offcpu_group {
	const struct offcpu_row *const *rows; /* the heaviest first; borrowed from the groups */
	size_t nrows;
	struct offcpu_sum sum;
	bool idle; /* all of them are */
};

/* The heaviest first. */
struct offcpu_groups {
	VEC_FIELDS(struct offcpu_group);
	const struct offcpu_row **rows;
};

/* Groups the rows of a profile, which are in order. False when memory is exhausted. */
bool offcpu_groups_find(struct offcpu_groups *groups, const struct offcpu_profile *profile);
void offcpu_groups_deinit(struct offcpu_groups *groups);

#endif
