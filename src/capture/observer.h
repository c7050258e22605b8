/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_OBSERVER_H
#define STAKEOUT_CAPTURE_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/snapshot.h"
#include "proc/process.h"

/*
 * Where a pass over the threads gets its facts without stopping any of them: the BPF task iterator, or /proc.
 * To add one: a file observer_NAME.c with the two functions, a create function below, and a name for --source.
 */

/* Where the kernel has a thread, for those who look at it again in a hurry (bpf/window_request.h). */
struct thread_place {
	uint64_t task; /* 0: not known */
	uint64_t regs;
	uint64_t start_ns;
	uint32_t cpu;	      /* where it runs, or ran last */
	uint16_t rt_priority; /* 0: none; 100: of the deadline class */
};

struct task_record;

struct observation {
	pid_t tid;
	char name[16 + 1];
	char state;
	bool running; /* on a CPU, as far as the observer can tell: its registers are not to be had without a stop */
	bool on_cpu;  /* it is known to have been on one */
	uint64_t nvcsw;
	uint64_t nivcsw;
	uint64_t runs; /* how often it got a CPU, where has_runs */
	bool has_runs;
	uint64_t start; /* when it was created, by the observer's own clock; 0: not known */
	bool kernel_worker; /* runs for the kernel only (io_uring): no user stack */
	int64_t off_cpu_ns; /* -1: not known */
	int64_t cpu_ns;     /* how long it has run, ever; -1: not known */
	struct snap_syscall syscall;
	struct user_regs regs;
	struct altstack altstack;
	uint64_t tid_address; /* see task_record.h; 0: not known */
	struct thread_place place;
	struct thread_facts facts; /* as far as a pass tells them; the text of `ahead` is valid until the next */
	int regs_error; /* -errno when the registers were refused */

	const uint64_t *kernel_pcs;	/* valid until the next pass */
	const char *const *kernel_text; /* likewise; the texts are the arena's */
	unsigned nkernel;
	int kernel_error; /* -errno when the kernel stack was refused */
};

struct observations {
	VEC_FIELDS(struct observation);
	uint64_t generation; /* identity of the address space: changes with exec; 0 when not known */
};

struct observe_request {
	pid_t only_tid;	    /* 0: all threads */
	bool counters_only; /* tid, state, running, counters; nothing else */
	bool kernel_stacks;
	struct arena *arena; /* for kernel texts */
};

struct observer {
	const char *name;
	const char *slow_why; /* why it took longer to set up than it should; NULL otherwise */
	/* Fills `out` anew. -ESRCH when the process is gone. */
	int (*observe)(struct observer *observer, const struct observe_request *request, struct err *err,
		       struct observations *out);
	void (*destroy)(struct observer *observer);
};

/* What a record of BPF's tells of a thread, but for its kernel stack. */
void observation_of_record(const struct task_record *record, bool counters_only, struct observation *out);

/* `process` must outlive the observer. The one beside another of BPF's has its program, and is used by the same thread. */
int observer_bpf_create(const struct process *process, struct err *err, struct observer **out);
int observer_libbpf_create(const struct process *process, struct err *err, struct observer **out);
int observer_beside_create(const struct observer *other, const struct process *process, struct err *err, struct observer **out);
int observer_proc_create(const struct process *process, struct err *err, struct observer **out);

#endif
