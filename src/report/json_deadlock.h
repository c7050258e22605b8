/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_JSON_DEADLOCK_H
#define STAKEOUT_REPORT_JSON_DEADLOCK_H

#include "model/deadlock.h"
#include "report/json_writer.h"

/*
 * The arrays "deadlocks" and "likely_deadlocks": of each, which threads are in it. `of`: only those that this process has a part in; NULL: all.
 * With `stacks` each thread has its own. NULL for `deadlocks` is none.
 */
void json_deadlocks(struct json *j, const struct deadlocks *deadlocks, const struct snapshot *of, bool stacks);

#endif
