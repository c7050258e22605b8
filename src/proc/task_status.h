/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_TASK_STATUS_H
#define STAKEOUT_PROC_TASK_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum task_id { TASK_ID_REAL, TASK_ID_EFFECTIVE, TASK_ID_SAVED, TASK_IDS };

/* What is in /proc/PID/status, or that of a thread; 0 for what is missing there. */
struct task_status {
	char name[17];
	char state;
	pid_t tgid;
	pid_t tracer;
	pid_t ns_pid;	    /* in the innermost pid namespace: its number for itself */
	unsigned nspids;    /* pid namespaces that number it, from that of /proc down to its own */
	uint32_t uids[TASK_IDS];
	uint32_t gids[TASK_IDS];
	uint64_t permitted; /* capabilities */
	uint64_t effective;
	uint64_t caught; /* signals that the process has handlers for, from the lowest bit on */
	bool has_switches;  /* the kernel has the next two, the last that are read */
	uint64_t nvcsw;
	uint64_t nivcsw;
};

/* Reads the file below `dir_fd`, however long it is: it lists all supplementary groups. Allocates nothing. 0 or -errno. */
int task_status_read(int dir_fd, const char *path, struct task_status *out);

#endif
