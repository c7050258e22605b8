/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SLEEPING_H
#define STAKEOUT_OFFCPU_SLEEPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/snapshot.h"
#include "model/stack.h"
#include "offcpu/feed/runtime_processes.h"
#include "offcpu/watch.h"
#include "proc/process.h"
#include "target/modules.h"
#include "target/memory.h"

/*
 * User stacks of sleeping threads, walked without stopping them: from the registers that are known, and from memory.
 * The files behind the memory maps can be kept, so that frames can be named when the process is gone. One thread uses
 * it.
 */
struct sleeping;

/*
 * Without `places` no files are kept, and stacks have none. `runtimes` tell frames of theirs; NULL: these are not wanted. NULL
 * when memory is exhausted.
 */
struct sleeping *sleeping_create(bool places, struct runtime_processes *runtimes);
void sleeping_destroy(struct sleeping *sleeping);

/* What is known of one process; starts zeroed, to be ended with sleeping_forget(). */
struct sleeping_process {
	struct sleeping_files *files; /* not owned */
	uint64_t generation;
	uint64_t checked_ns; /* when its memory map was last read */
	bool looking;	     /* from the first walk of a look to its end: */
	bool knows_runtimes; /* what they are now was looked at */
	struct memory vm;
	struct err err; /* why its files could not be opened, or 0 */
};

/*
 * The threads of a process are looked at together, so we check only once which program it runs: a thread that slept all
 * the while has not called exec, nor has another thread, as that would have ended this one. Call this when all threads
 * are done.
 */
void sleeping_end_look(struct sleeping_process *known);

void sleeping_forget(struct sleeping *sleeping, struct sleeping_process *known);

/* Starts zeroed; reused for each walk. */
struct sleeping_stack {
	struct raw_stack frames; /* with the addresses of the process */
	VEC(uint64_t) places;	 /* of each, for sleeping_module(); the address itself when it is in no known file */
	uint32_t runtime_process; /* whose runtimes told of frames: runtime_processes.h; 0: none did */
	char error[512];	 /* why it is missing or ends early; "": it is whole */
};

void sleeping_stack_deinit(struct sleeping_stack *stack);

/*
 * The registers and system call in `thread` were read just before. The stack is right only if the thread has not run
 * from then until this call returns: the caller has to check that.
 */
void sleeping_walk(struct sleeping *sleeping, struct sleeping_process *known, const struct process *process,
		   const struct snap_thread *thread, struct sleeping_stack *out);

/* For struct watch_ops: see there. */
bool sleeping_list_targets(const struct sleeping *sleeping, struct watch_targets *out);
void sleeping_keep_names(struct sleeping *sleeping);

/* For struct native_names_options: the module of a place. */
struct module *sleeping_module(void *sleeping, uint64_t place, uint64_t *vaddr);

#endif
