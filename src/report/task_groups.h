/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TASK_GROUPS_H
#define STAKEOUT_REPORT_TASK_GROUPS_H

#include "base/vec.h"
#include "model/trace.h"

/* Tasks that are shown as one: members[first] to members[first + count - 1]. */
struct task_group {
	size_t first;
	size_t count;
};

/*
 * The tasks of one trace after the other: those that run, then those that wait, with unusual stacks first, then those that
 * have not begun.
 */
struct task_groups {
	VEC_FIELDS(struct task_group);
	const struct trace_task **members;
};

/* With `merge`, tasks in the same state with the same stack that await the same kind of thing form one group. 0 or -ENOMEM. */
int task_groups_init(struct task_groups *groups, const struct trace *const *traces, size_t ntraces, bool merge);
void task_groups_deinit(struct task_groups *groups);

#endif
