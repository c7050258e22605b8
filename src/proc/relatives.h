/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_RELATIVES_H
#define STAKEOUT_PROC_RELATIVES_H

#include <stdbool.h>
#include <sys/types.h>

#include "proc/process.h"
#include "proc/task_stat.h"

/* Other processes that one has to do with, as they are now. */

/* A process, or a thread, by its number. 0 or -errno. */
int process_glance(pid_t pid, struct task_stat *out);

/* Its number in its innermost pid namespace, and how many namespaces number it; 0: it has ended. */
pid_t process_innermost_number(pid_t pid, unsigned *namespaces);

/* Appends the children of one thread, the oldest first. -ENOENT: this kernel does not list them, or the thread has ended. */
int process_thread_children(const struct process *process, pid_t tid, struct tid_list *out);

/*
 * The child that a thread in vfork() waits for: the one that shares its memory. Others may have come from threads that have ended since. With
 * `compare` false, or where the kernel does not compare, it has to be the only child. 0: it is not known which one it is.
 */
pid_t process_vforked_child(const struct process *process, pid_t tid, bool compare);

/* Appends the children of all threads. 0 or -errno. */
int process_children(const struct process *process, struct tid_list *out);

/* The process that a pidfd of a thread stands for; 0: it is none, it has ended, or it cannot be told. */
pid_t process_of_pidfd(const struct process *process, pid_t tid, int fd);

#endif
