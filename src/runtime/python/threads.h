/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_THREADS_H
#define STAKEOUT_RUNTIME_PYTHON_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/mem.h"
#include "proc/process.h"
#include "runtime/python/layout.h"

/* The thread states of a process: which thread has which. */

enum {
	PYTHON_MAX_THREADS = 4096,
	PYTHON_MAX_INTERPRETERS = 256,
};

struct python_thread {
	pid_t tid;
	pid_t own; /* its number for itself, in its own pid namespace, */
	pid_t native; /* and what its thread state says that is: after a fork that Python knows nothing of, its parent's */
	uint64_t tstate;
	uint64_t interp;
	uint64_t thread; /* what pthread_self() is */
	uint64_t name;   /* that the program gave it: the address of a str; 0: not known */
	bool is_daemon;
	uint64_t lock; /* the lock object that it waits for; 0: none, or it is not known */
	pid_t holder;  /* the thread that has it by a `with` statement; 0: not known */
	pid_t joined;  /* or the thread whose end it waits for; 0: none */
	unsigned match; /* how these two were found (names.c) */
};

struct python_threads {
	VEC_FIELDS(struct python_thread);
};

/*
 * Fills the list anew; `tids` has the numbers that the threads have for themselves, and so has the list, in both fields.
 * The layout is checked by that: each thread state must say that it is its interpreter's, and be of a
 * thread of the process. It finds where the C library has the tid, and writes it into the layout: up to 3.10 a thread state does
 * not have it, and later it may be that of a thread which has forked the process. -EINVAL with
 * the reason when it does not hold; `tids` may be empty, and is then not compared with.
 */
int python_threads_list(struct python_layout *layout, struct mem *mem, const struct tid_list *tids, struct err *err,
			struct python_threads *out);

#endif
