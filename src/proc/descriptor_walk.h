/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_DESCRIPTOR_WALK_H
#define STAKEOUT_PROC_DESCRIPTOR_WALK_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Visits the descriptors of all processes, on all cores: visit() has to lock what it shares. `dir` is a directory like /proc/PID/fd, beside which
 * there is fdinfo, and `number` a name in it. visit() returns 0, or -errno when it cannot look at a descriptor; -ENOMEM ends the walk. *all: each
 * descriptor was visited, and could be looked at unless it was closed meanwhile. 0 or -errno.
 */
int descriptor_walk(int (*visit)(void *arg, pid_t pid, int dir, const char *number), void *arg, bool *all);

#endif
