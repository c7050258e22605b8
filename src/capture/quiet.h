/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_QUIET_H
#define STAKEOUT_CAPTURE_QUIET_H

#include "capture/take.h"
#include "capture/waited.h"
#include "kernel/task_iter.h"
#include "kernel/window_look.h"
#include "target/memory.h"

/* One window on threads of some processes: what is prepared for it (quiet.c), and what is done in it (quiet_work.c). */

enum {
	QUIET_FIRST_BYTES = 32 << 10, /* of each stack, before any gets more: few are deeper */
	QUIET_THREAD_BYTES = QUIET_FIRST_BYTES + WAITED_BYTES, /* room for each */
	QUIET_MORE_BYTES = 4 << 20, /* that all deeper ones together get, if there is time */
};

#define QUIET_HELD_BECAUSE "threads that run are held by ptrace: "

/* What is one process's. */
struct part {
	struct take *take;
	pid_t mm_tid;
	size_t first, end; /* of its threads */
	const struct thread_reader *reader; /* or NULL */
	struct recorder_room room;
	struct bulk buffer;
	uint64_t used;
};

/* One thread that is to be taken. */
struct hasty {
	struct part *part;
	size_t at; /* in the snapshot */
	struct mem_copy stack;
	struct mem_copy interrupted;
	struct mem_copy waited;
	bool read; /* by options.reader, or there is none */
	bool checked; /* it was looked at again */
	uint64_t limit; /* of its copy, if it is deep */
};

/* What the leader works on. If it never comes back it keeps all of it. */
struct quiet {
	struct window_look *look;
	struct window_request *request;
	uint64_t opened_ns, looked_ns; /* when the window was opened, and the CPUs were taken, */
	uint64_t copied_ns, read_ns; /* and each step was done */
	struct part *parts;
	size_t nparts;
	size_t n;
	struct memory_job jobs[2 * WINDOW_THREADS]; /* of thread i its stack, and what it waits for, from 2 * i on at the earliest */
	struct hasty *owners[2 * WINDOW_THREADS];
	struct mem_copy *copies[2 * WINDOW_THREADS];
	struct hasty threads[WINDOW_THREADS];
};

/* Of the thread at `i`: that it could be looked at, and does not run. */
bool quiet_is_readable(const struct quiet *q, size_t i);

/* Its registers, as the program that it runs has them. */
void quiet_registers(const struct take *take, const struct task_record *record, struct user_regs *out);

/*
 * The same as quiet_work(), before anybody is kept waiting for it: what comes out is of no use, but then much of it is in this CPU's
 * caches.
 */
void quiet_rehearse(struct quiet *q);

/* For struct window_plan, with a struct quiet: in the leader, while the CPUs are taken: no allocation, no file, no output. */
bool quiet_work(void *arg, uint64_t opened_ns, uint64_t until);

#endif
