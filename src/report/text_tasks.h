/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_TASKS_H
#define STAKEOUT_REPORT_TEXT_TASKS_H

#include "report/report.h"
#include "report/task_groups.h"
#include "report/text_format.h"

/*
 * "asyncio: 240 tasks", and a line for each group: how many, in which state, their name, where they are and what they await.
 * `several`: there are several processes, so that it is said which has them. `width` is that of the terminal, 0: any.
 */
void text_tasks_table(const struct text *t, const struct task_groups *groups, unsigned width, bool several);

/* A block for each group, as for threads. */
void text_tasks(const struct text *t, const struct task_groups *groups, const struct report_options *options, bool several);

/* How many lines the blocks take, at least. */
size_t text_tasks_lines(const struct task_groups *groups);

#endif
