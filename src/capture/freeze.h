/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_FREEZE_H
#define STAKEOUT_CAPTURE_FREEZE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "target/memory.h"
#include "target/recorder.h"
#include "model/snapshot.h"
#include "proc/process.h"

/*
 * Holds threads for as long as it takes to read their registers and stacks: PTRACE_SEIZE, PTRACE_INTERRUPT, read,
 * PTRACE_DETACH. Never ATTACH and SIGSTOP: a tool killed in the window would leave the target stopped.
 *
 * All ptrace calls are made from a thread of their own that ends with the call. Its end makes the kernel let go of
 * whatever it still traces, also of a thread in state D that never stopped and so cannot be detached.
 */

struct thread_reader;

enum held_result {
	HELD_PENDING,	/* internal */
	HELD_STOPPED,	/* registers and stack were taken */
	HELD_ASLEEP,	/* had fallen asleep when it was looked at just before the interrupt: it was left alone */
	HELD_GONE,	/* it has ended */
	HELD_TRACED,	/* another tracer has it */
	HELD_DENIED,	/* ptrace was refused */
	HELD_TIMEOUT,	/* it did not stop in time */
};

struct held_thread {
	pid_t tid;
	enum held_result result;
	bool seized;
	int signal;	    /* to deliver on detach: it was stopped on its way to a signal */
	struct altstack altstack; /* in */
	uint64_t stack_end; /* in: where the next thread's stack begins; 0: not known */
	const struct user_regs *seen; /* in: where it has to stand for more of it to be read; NULL: anywhere */
	uint64_t seized_ns; /* CLOCK_MONOTONIC */
	uint64_t asked_ns;  /* at the interrupt */
	uint64_t pause_ns;  /* from the interrupt to the detach: the pause cannot have been longer */
	struct user_regs regs;
	struct mem_copy stack;
	struct mem_copy interrupted; /* see altstack.h */
};

enum { FREEZE_ROOM_FOR_CLONES = 256 };

/*
 * True when the registers that a pass saw and those of the stop are of the same place. aarch64 has set the pc back to
 * the system call by then, to make it start again; the pass's pc, behind it, is what callers then keep.
 */
bool freeze_is_same_place(const struct arch *arch, const struct user_regs *seen, const struct user_regs *held);

struct held_list {
	VEC_FIELDS(struct held_thread);
};

struct freeze_request {
	const struct process *process;
	const struct arch *arch;
	const struct maps *maps;
	struct memory *vm;
	uint64_t stack_size; /* most bytes to copy of one stack */
	struct bulk buffer;  /* where stacks go, one after the other */
	uint64_t wait_ns;    /* how long the held ones wait for the last to stop */
	size_t nfirst;	     /* so many at the start of the list, those asleep, are stopped and copied before the rest */
	bool look_first;     /* leave alone what is asleep just before its interrupt */
	bool whole_process;  /* also hold threads that are created meanwhile */

	/* When set: reads more of each held thread, through memory that keeps it in `room`. Runs in the tracing thread. */
	const struct thread_reader *reader;
	struct recorder_room *room;

	/* When set: called for each held thread before any is let go (--ptrace). Runs in the tracing thread. */
	void (*on_held)(void *arg, const struct held_thread *held, struct mem *peek);
	void *on_held_arg;

	int64_t *stood_ns; /* out: CLOCK_REALTIME, while all that were held stood; may be NULL */
};

/*
 * Holds the listed threads together, reads them and lets them go; with whole_process the list may grow. -EAGAIN when
 * the process is executing another program.
 */
int freeze_threads(const struct freeze_request *request, struct err *err, struct held_list *list);

#endif
