/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_MEMORY_H
#define STAKEOUT_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/maps.h"
#include "model/mem.h"
#include "proc/process.h"

/*
 * Reads the memory of a live process without waiting for ever. Most of it is read at once: many pieces with one
 * process_vm_readv, or through /proc/PID/mem where that is asked for or the system call is refused. Memory that a
 * userfaultfd handler may owe is read in ways that do not wait for it, and files that a server has to deliver are read by a
 * helper, for as long as there is patience. Nothing here allocates while threads are held.
 *
 * process_vm_readv takes a number, which may be another process's by then: bytes count only if the number is still this
 * one's afterwards. That it still has the same address space is for the caller to check (target_check, or the passes of
 * a capture).
 */
struct memory {
	struct mem mem; /* single reads, through /proc/PID/mem: that descriptor stays with this address space */
	const struct process *process;
	int mem_fd;           /* /proc/PID/mem, or -1 */
	bool prefer_proc_mem; /* as it was asked for */
	bool use_proc_mem;    /* for all reads */

	/* What tells whether a read may block for ever. */
	const struct maps *maps; /* of the target; NULL: not known, and everything is read directly */
	bool is_old; /* they were read some time ago: what cannot be read may not be there any more */
	int pagemap_fd;
	bool held; /* threads of the target are held: nothing is waited for */
	const struct map_entry *refused; /* a mapping that was left out and is still to be reported, */
	uint64_t refused_at;		 /* and where in it */
	unsigned searched;		 /* how often it was looked for such memory in the map as it is now */
};

/* `process` must outlive it. */
void memory_init(struct memory *vm, const struct process *process, bool prefer_proc_mem);
void memory_deinit(struct memory *vm);

struct mem_copy;

struct memory_job {
	uint64_t address;
	uint64_t len;
	uint8_t *dst;
	uint64_t done;   /* out: bytes read from the start; fewer than len where memory is not readable, */
	bool unanswered; /* or where it did not come in time, or could not be waited for because threads are held */
};

/* What came of a job that was to make this copy. */
void memory_job_finish(const struct memory_job *job, struct mem_copy *copy);

/* Whether the number that memory is read by is still this process's. */
bool memory_has_number(const struct process *process);

/* Whether no server of a file system has to deliver any of it, as far as the map tells. */
bool memory_is_local(const struct memory *vm, uint64_t address, uint64_t len);

/* Around the time in which threads of the target are held. */
void memory_hold(struct memory *vm);
void memory_release(struct memory *vm);

/* False when a debugger that reads it may wait for ever: for PTRACE_PEEKDATA, which does not wait for userfaultfds. */
bool memory_is_prompt(struct memory *vm, uint64_t address, uint64_t len);

/*
 * The same by process_vm_readv alone, for who has no time for more: waits for whoever has to deliver a page, and does not check that
 * the number is still the process's. How many bytes were read.
 */
uint64_t memory_copy_now(pid_t mm_tid, struct memory_job *jobs, size_t njobs);

/* The first error met, or 0; jobs after a failed one are still done. -ESRCH: the process is gone, and nothing was read. */
int memory_copy(struct memory *vm, struct memory_job *jobs, size_t njobs);

#endif
