/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_CGROUP_H
#define STAKEOUT_PROC_CGROUP_H

#include "base/arena.h"
#include "model/container.h"
#include "proc/process.h"

/* What the text of /proc/PID/cgroup tells. Strings go to the arena. */
void cgroup_parse(const char *text, struct arena *arena, struct container *out);

/* The same of a process; nothing where the file cannot be read. */
void cgroup_read(const struct process *process, struct arena *arena, struct container *out);

#endif
