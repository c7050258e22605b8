/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_FAMILY_H
#define STAKEOUT_PROC_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

#include "proc/process.h"

/* The thread that was started last, of those whose numbers /proc has; 0: not known. */
pid_t process_newest(void);

/* Appends all processes that /proc shows now. -errno. */
int process_list_all(struct tid_list *out);

/* The parent of a process; 0 when the process has ended. */
pid_t process_parent(pid_t pid);

/* Whether it is a child of ours that sends no signal when it ends, as those that this program makes (target/helper.h). */
bool process_is_helper(pid_t pid, pid_t self);

/* Appends the processes that descend from those in the list, as they are now. -errno. */
int process_add_descendants(struct tid_list *pids);

/* The same, but without our own process. */
int process_ids_add_descendants(struct process_ids *ids, struct err *err);

#endif
