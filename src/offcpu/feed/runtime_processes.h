/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_RUNTIME_PROCESSES_H
#define STAKEOUT_OFFCPU_FEED_RUNTIME_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/offcpu_probe.h"
#include "model/stack.h"
#include "runtime/runtime.h"
#include "target/target.h"

/*
 * Processes with language runtimes whose frames BPF tells (bpf/runtime_layout.h). BPF is given what it needs to find these, and
 * what their names need is read as soon as a stack has come, by a thread of its own: the process may end, or forget its
 * functions.
 *
 * A process has another number when it has executed another program, or is another one with the same pid: names are those
 * of the program that had the stack.
 */
struct runtime_processes;

enum {
	RUNTIME_PROCESSES_MAX = 512,      /* that are read at the same time: each takes descriptors and memory */
	RUNTIME_PROCESSES_EVER = 1 << 20, /* in one recording */
};

struct runtime_processes_options {
	bool keep; /* native frames that others stand for */
};

/* Without a probe: nobody takes stacks in BPF. NULL when memory is exhausted. */
struct runtime_processes *runtime_processes_create(struct offcpu_probe *probe, const struct runtime_processes_options *options);
void runtime_processes_destroy(struct runtime_processes *processes);

int runtime_processes_start(struct runtime_processes *processes, struct err *err);
void runtime_processes_end(struct runtime_processes *processes); /* when all that was asked for is done */

/*
 * The map of a process was just read. If there may be runtimes in it, they are looked for: at once, or by the thread when
 * that was started. Any thread.
 */
void runtime_processes_note(struct runtime_processes *processes, struct target *target);

/* It has ended, or executed another program: what comes with its pid from now on is another's. */
void runtime_processes_forget(struct runtime_processes *processes, pid_t tgid);

/*
 * The number of a process that had a stack with frames of runtimes; what their names need is read soon. The stack must
 * outlive the thread, and not change. 0: there are too many, or memory is exhausted.
 */
uint32_t runtime_processes_learn(struct runtime_processes *processes, pid_t tgid, const struct raw_stack *raw);

/*
 * The number of a process whose sleeping threads are walked, and its runtimes, which nobody else uses until the number is
 * given back. 0: it has none.
 */
uint32_t runtime_processes_take(struct runtime_processes *processes, const struct target *target, const struct runtimes **out);
void runtime_processes_give(struct runtime_processes *processes, uint32_t number);

/*
 * Where they belong among all native frames of a stack that BPF could not walk to its end: told->runtime gets the places. False: they
 * have none. The process may be gone.
 */
bool runtime_processes_place(void *processes, uint32_t number, const struct raw_stack *native, struct raw_stack *told);

/* For the naming: puts them in their places. False when memory is exhausted. Any thread. */
bool runtime_processes_merge(void *processes, uint32_t number, const struct raw_stack *raw, struct stack *stack);

/*
 * Threads have names that only their runtimes know. They are asked for now and then, by the thread, and once more here: to be
 * called when that has ended; only the first time counts. Names are those of the last time, and are gone only when all of this is.
 */
void runtime_processes_name_threads(struct runtime_processes *processes);

/* For the naming: that of a thread that began at this time; NULL: not known. Any thread. */
const char *runtime_processes_thread_name(void *processes, pid_t tgid, pid_t tid, uint64_t start_ns);

/* Why frames of runtimes may be missing, once for each process. To be called when the thread has ended. */
typedef void (*runtime_processes_note_fn)(void *arg, const char *note);
void runtime_processes_notes(struct runtime_processes *processes, runtime_processes_note_fn fn, void *arg);

#endif
