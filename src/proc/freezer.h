/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_FREEZER_H
#define STAKEOUT_PROC_FREEZER_H

#include "base/arena.h"
#include "proc/process.h"

/* The control group in which all of a process is frozen, by either version, as the path in /proc/PID/cgroup; NULL: it is in none. */
const char *freezer_find(const struct process *process, struct arena *arena);

#endif
