/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_SLEEPING_H
#define STAKEOUT_OFFCPU_SLEEPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/snapshot.h"
#include "model/stack.h"
#include "proc/process.h"
#include "target/modules.h"
#include "target/memory.h"

/*
 * User stacks of threads that sleep, walked without stopping them from what is known of their registers; the rest comes
 * from memory. The files behind the memory maps can be kept, so that frames can be named when the process is gone.
 * One thread uses it.
 */
struct sleeping;

/* Without `places` no files are kept, and stacks have none. NULL when memory is exhausted. */
struct sleeping *sleeping_create(bool places);
void sleeping_destroy(struct sleeping *sleeping);

/* What is known of one process; starts zeroed, to be ended with sleeping_forget(). */
struct sleeping_process {
	struct sleeping_files *files; /* not owned */
	uint64_t generation;
	uint64_t checked_ns; /* when its memory map was last read */
	bool looking;	     /* from the first walk of a look to its end: */
	struct memory vm;
	struct err err; /* why its files could not be opened, or 0 */
};

/*
 * The threads of a process are looked at together, and so it is asked only once which program it runs: a thread that has
 * slept all the while has executed nothing, nor has another, which would have ended it. To be called when all are done.
 */
void sleeping_end_look(struct sleeping_process *known);

void sleeping_forget(struct sleeping *sleeping, struct sleeping_process *known);

/* Starts zeroed; reused from walk to walk. */
struct sleeping_stack {
	struct raw_stack frames; /* with the addresses of the process */
	VEC(uint64_t) places;	 /* of each: what sleeping_module() takes; the address where that is in no known file */
	char error[512];	 /* why it is missing or ends early; "": it is whole */
};

void sleeping_stack_deinit(struct sleeping_stack *stack);

/*
 * `thread`, its registers and system call, was read just before. The stack is true only if the thread has not run from
 * then until the call is over: that is for the caller to see.
 */
void sleeping_walk(struct sleeping *sleeping, struct sleeping_process *known, const struct process *process,
		   const struct snap_thread *thread, struct sleeping_stack *out);

/* For struct native_names_options: the module of a place. */
struct module *sleeping_module(void *sleeping, uint64_t place, uint64_t *vaddr);

#endif
