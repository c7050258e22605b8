/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_FAMILY_H
#define STAKEOUT_PROC_FAMILY_H

#include <stddef.h>
#include <sys/types.h>

#include "proc/process.h"

/* Who started a process, by its entry in /proc; 0 when it has ended. */
pid_t process_parent(int proc_fd, const char *pid);

/* Appends the processes that descend from those in the list, as they are now. -errno. */
int process_add_descendants(struct tid_list *pids);

#endif
