/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_FD_TABLES_H
#define STAKEOUT_CAPTURE_FD_TABLES_H

#include "capture/besides.h"

/*
 * Threads of a process have one table of descriptors in common, unless one of them has unshared it: then the same number is something else there.
 * BPF's pass over the threads tells which table each has; where there was none the kernel is asked to compare (kcmp).
 */
struct fd_tables {
	const struct process *process;
	uint64_t common;  /* that of the thread whose files stand for the process: process->mm_tid; 0: not known */
	bool can_compare; /* numbers of threads are ours */
};

struct fd_tables fd_tables_of(const struct besides *b);

/* Which table a thread has for itself, or with others that have the same one. 0: that of the process, or it cannot be told. */
uint64_t fd_tables_own(const struct fd_tables *tables, const struct snap_thread *t);

#endif
