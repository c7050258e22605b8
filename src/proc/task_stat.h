/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_TASK_STAT_H
#define STAKEOUT_PROC_TASK_STAT_H

#include <stdint.h>
#include <sys/types.h>

/* What is in /proc/PID/stat, or that of a thread: less than in "status", but quicker to read. */
struct task_stat {
	char name[17];
	char state;
	pid_t parent;
	pid_t group; /* of processes */
	uint64_t flags;	      /* enum task_flag, and others */
	uint64_t start_time;  /* in clock ticks since boot */
	uint64_t start_stack; /* where its stack starts; 0 when not permitted */
	int exit_signal;      /* that its parent gets when it ends; 0: none */
	int cpu;	      /* that it is on, or was on last; -1: not told */
};

enum task_flag {
	TASK_FLAG_IO_WORKER = 0x10,
	TASK_FLAG_KERNEL_THREAD = 0x00200000,
};

/* Reads the file below `dir_fd`. Allocates nothing. 0 or -errno. */
int task_stat_read(int dir_fd, const char *path, struct task_stat *out);

#endif
