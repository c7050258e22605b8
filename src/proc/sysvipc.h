/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_SYSVIPC_H
#define STAKEOUT_PROC_SYSVIPC_H

#include "proc/process.h"

/* A set of semaphores or a queue of System V. */
struct sysv_object {
	uint32_t key;
	pid_t last; /* that has used it: changed the semaphore, put a message or taken one; 0: nobody, or it is not known */
};

/* False where the process has others than we have (another IPC namespace), or there is none with this number. */
bool sysv_semaphore_read(const struct process *process, int id, int index, struct sysv_object *out); /* index -1: not known */
bool sysv_queue_read(const struct process *process, int id, bool sender, struct sysv_object *out);

#endif
