/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_ROSTER_H
#define STAKEOUT_RUNTIME_PYTHON_ROSTER_H

#include "base/map.h"
#include "runtime/python/threads.h"
#include "target/target.h"

/* The thread states of a process as it runs on: threads come and go, and one that was held may have ended since. */
struct python_roster {
	struct python_threads listed; /* as they were the last time */
	struct python_threads known;  /* those, and such as were listed before */
	struct u64map by_tid;         /* to position in `known`, of the first: a thread has one in each interpreter */
};

void python_roster_deinit(struct python_roster *roster);

/* Lists them anew, by the numbers that we have for the threads: see python_threads_list(). What was listed before stays known. */
int python_roster_list(struct python_roster *roster, struct python_layout *layout, struct target *target, struct err *err);

/* One more that is known, behind the others; false when memory is exhausted. */
bool python_roster_add(struct python_roster *roster, const struct python_thread *thread);

/* The first thread state of a thread, and the one of the same thread in another interpreter; NULL: there are no more. */
const struct python_thread *python_roster_find(const struct python_roster *roster, pid_t tid);
const struct python_thread *python_roster_find_other(const struct python_roster *roster, const struct python_thread *thread);

#endif
