/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_BACKGROUND_H
#define STAKEOUT_BASE_BACKGROUND_H

#include <sched.h>

/*
 * Does the work in a thread of lower priority, and returns when it is done: whoever else wants a CPU, such as the process
 * that is looked at, gets it first. It stays off the CPUs that are `busy` (may be NULL), if at least half of those it may
 * use are left: whoever has got a CPU keeps it up to the next tick, of whatever priority it is. What the work starts on
 * other cores does the same; the caller keeps its own priority and CPUs.
 */
void background_run(const cpu_set_t *busy, void (*work)(void *arg), void *arg);

#endif
