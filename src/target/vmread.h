/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_VMREAD_H
#define STAKEOUT_TARGET_VMREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/mem.h"
#include "proc/process.h"

/*
 * Reads the memory of a live process: many pieces with one process_vm_readv, or /proc/PID/mem where that is asked
 * for or the system call is refused. Nothing here allocates: it is used while threads are held.
 */
struct vmread {
	struct mem mem;
	pid_t pid;
	int mem_fd; /* /proc/PID/mem, or -1 */
	bool use_proc_mem;
};

void vmread_init(struct vmread *vm, const struct process *process, bool use_proc_mem);
void vmread_deinit(struct vmread *vm);

struct vmread_job {
	uint64_t address;
	uint64_t len;
	uint8_t *dst;
	uint64_t done; /* out: bytes read from the start; fewer than len where memory is not readable */
};

/* The first error met, or 0; jobs after a failed one are still done. */
int vmread_copy(struct vmread *vm, struct vmread_job *jobs, size_t njobs);

#endif
