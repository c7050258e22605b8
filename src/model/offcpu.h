/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_OFFCPU_H
#define STAKEOUT_MODEL_OFFCPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "model/container.h"
#include "model/stack.h"
#include "model/trace.h"

/* Where threads waited over some time: all that a report of `stakeout offcpu` needs. Strings outlive it. */

/* Waits added up. */
struct offcpu_sum {
	uint64_t count;
	uint64_t unfinished; /* of the count: not over when the recording ended, and counted up to then */
	uint64_t total_ns;
	uint64_t max_ns;
	uint64_t min_ns;
	uint64_t runnable_ns; /* of the total: awake, and waiting for a CPU */
};

/* So many waits that took about this long. */
struct offcpu_length {
	uint64_t ns;
	uint64_t count;
};

/* By rising length, each once. */
struct offcpu_lengths {
	VEC_FIELDS(struct offcpu_length);
};

void offcpu_lengths_deinit(struct offcpu_lengths *lengths);

/* False when memory is exhausted. */
bool offcpu_lengths_add(struct offcpu_lengths *lengths, uint64_t ns, uint64_t count);

/* The length that half of the waits, and 99 of 100, do not exceed; within 6.25 %. */
struct offcpu_quantiles {
	bool are_known;
	uint64_t p50_ns;
	uint64_t p99_ns;
};

/* The thread that woke another one. */
struct offcpu_waker {
	pid_t pid;
	pid_t tid;	/* 0: an interrupt did, or a thread that cannot be seen from here */
	bool interrupt; /* in whoever's name */
	const char *name;
	const struct stack *kernel; /* NULL: there is none */
	const struct stack *user;
	const char *kernel_error; /* as in struct offcpu_row */
	const char *user_error;
};

/* What a thread waited for, as far as its stacks tell, or a look at it when the recording ended. */
enum offcpu_cause {
	OFFCPU_CAUSE_CPU,       /* nothing else: it was preempted */
	OFFCPU_CAUSE_LOCK,      /* of the program or of the kernel */
	OFFCPU_CAUSE_CONDITION, /* a condition variable, a semaphore, other threads, or parked by its runtime */
	OFFCPU_CAUSE_FUTEX,     /* one of these two */
	OFFCPU_CAUSE_DISK,
	OFFCPU_CAUSE_FAULT, /* a page that was not in memory */
	OFFCPU_CAUSE_NETWORK,
	OFFCPU_CAUSE_PIPE,   /* or another channel to a process of this machine */
	OFFCPU_CAUSE_EVENTS, /* of several descriptors, or of the kernel: poll, epoll, io_uring */
	OFFCPU_CAUSE_TIMER,
	OFFCPU_CAUSE_CHILD,
	OFFCPU_CAUSE_SIGNAL,
	OFFCPU_CAUSE_TERMINAL,
	OFFCPU_CAUSE_OTHER, /* or not known */
	OFFCPU_CAUSES,
};

/* Who has waits: a process. Strings are NULL where they are not known. */
struct offcpu_identity {
	pid_t pid;
	uint64_t start_ns; /* as process_start_ns of its threads */
	const char *name;  /* of its main thread */
	const char *file;  /* the program's */
	const char *script; /* what the program runs, if it is an interpreter */
	const char *script_word; /* the same with directories or packages */
	const char *command_line;
	pid_t inner_pid; /* in its own pid namespace; 0: that is ours, or it is not known */
	struct container container;
};

/* A number may be used again: this tells the processes that have had it apart. */
uint64_t offcpu_process_key(pid_t pid, uint64_t start_ns);

/* A process whose waits are part of a row (--no-threads). */
struct offcpu_member {
	pid_t pid;
	uint64_t start_ns;
	size_t nthreads; /* of it, that have waited there */
	uint64_t total_ns;
};

/* Waits with the same process, thread, state, stacks and waker. */
struct offcpu_row {
	pid_t pid;               /* 0: of several processes of one program */
	pid_t tid;               /* 0: of all threads of the program's processes (--no-threads) */
	uint64_t program;        /* then a number that those of one program have in common; else 0 */
	size_t first_member;     /* then in the profile, the heaviest first */
	size_t nmembers;
	const char *thread_name; /* then of a main thread, where that is known */
	uint64_t process_start_ns; /* numbers are used again: with their starts they are not; 0: not known */
	uint64_t thread_start_ns;
	unsigned nth;            /* as that of the thread; offcpu_profile_finish() fills it in */
	char state;              /* S, D, or R: preempted */
	struct offcpu_sum sum;
	size_t lengths;             /* of its waits: a number that the profile gave; 0: they are not known */
	const struct stack *kernel; /* innermost first; NULL: there is none */
	const struct stack *user;
	const char *kernel_error; /* why the kernel stack is missing, or NULL */
	const char *user_error;   /* why the user stack is missing or ends early, or NULL: it is whole */
	enum offcpu_cause cause;  /* offcpu_profile_finish() fills it in */
	bool idle;                /* here the thread waits for work, nearly all the time: an event loop, a pool */
	bool has_waker;
	struct offcpu_waker waker;
};

struct offcpu_thread {
	pid_t pid;
	pid_t tid;
	uint64_t process_start_ns; /* 0: not known */
	uint64_t start_ns;
	unsigned nth; /* of those that had these numbers, from 1 on; offcpu_profile_finish() fills it in */
	const char *name;
	struct offcpu_sum sum;
	uint64_t sleeping_ns;        /* S, without what was runnable */
	uint64_t uninterruptible_ns; /* D, likewise */
	uint64_t runnable_ns;        /* waiting for a CPU: preempted, or awake */
	uint64_t elapsed_ns;         /* of the recording, as long as it lived; 0: not known */
	uint64_t on_cpu_ns;          /* of this; what is missing in its sum are waits that are not recorded */
	uint64_t idle_ns;            /* of its sum: in rows that are idle; offcpu_profile_finish() fills it in */
};

struct offcpu_loss {
	const char *name; /* "waits_ring_full"… */
	uint64_t count;
};

/* Which waits are recorded: of others a profile knows nothing. */
struct offcpu_filter {
	uint64_t min_ns;
	uint64_t max_ns; /* UINT64_MAX: there is no limit */
	bool sleeping;   /* states S, D and R */
	bool uninterruptible;
	bool runnable;
};

/* Lengths that were added up are a ring: each has the number of the next. */
struct offcpu_lengths_link {
	const struct offcpu_lengths *lengths;
	size_t next;
};

/* A wait that began before the recording counts from its start, one that is not over at its end counts up to there. */
struct offcpu_profile {
	int64_t start_ns;     /* CLOCK_REALTIME, when the recording began */
	uint64_t duration_ns; /* of the recording */
	bool estimate;        /* sampled from /proc: times are multiples of the interval */
	bool by_process;      /* rows are given for each thread, and added up for each process in the end */
	struct offcpu_filter filter;
	const char *method; /* where and when stacks were taken: "sched_exit", "kprobe", "switch", "proc" */
	struct offcpu_sum total;
	VEC(struct offcpu_thread) threads; /* by falling total */
	VEC(struct offcpu_row) rows;       /* by falling total */
	VEC(struct offcpu_identity) processes; /* by pid and start; those of all rows, or none */
	VEC(struct offcpu_member) members;
	VEC(struct offcpu_lengths_link) lengths;
	VEC(struct offcpu_loss) losses;    /* every counter, also those that are 0 */
	VEC(const char *) notes;           /* fallbacks taken, what is missing and how to get it */
	VEC(struct trace *) looks;   /* at processes, when the recording had ended: borrowed */
	uint64_t stopped_ns;               /* then: CLOCK_MONOTONIC, when that was */
};

void offcpu_profile_deinit(struct offcpu_profile *profile);

/* Adds a thread, and its sum to the total; and a row. False when memory is exhausted. */
bool offcpu_profile_add_thread(struct offcpu_profile *profile, const struct offcpu_thread *thread);
bool offcpu_profile_add_row(struct offcpu_profile *profile, struct offcpu_row row);

/* True when nothing was lost, every stack is whole, and no time is an estimate. */
bool offcpu_profile_is_complete(const struct offcpu_profile *profile);

/* What the thread of this row waits for, if one of these waits of its is not over; NULL: that is not known. */
const struct trace_thread *offcpu_profile_look(const struct offcpu_profile *profile, const struct offcpu_row *row,
					       const struct offcpu_sum *waits);

/* By pid and start, as they have to be to be found; and members, the heaviest first. */
void offcpu_profile_sort_processes(struct offcpu_profile *profile);
void offcpu_sort_members(struct offcpu_member *members, size_t n);

/* NULL: it is not among the processes of the profile. */
const struct offcpu_identity *offcpu_profile_process(const struct offcpu_profile *profile, pid_t pid, uint64_t start_ns);

/* The number of these lengths, which are borrowed; 0 when memory is exhausted. */
size_t offcpu_profile_add_lengths(struct offcpu_profile *profile, const struct offcpu_lengths *lengths);

/* Adds the lengths of one row to those of another. */
void offcpu_profile_join_lengths(struct offcpu_profile *profile, struct offcpu_row *to, const struct offcpu_row *row);

/*
 * The quantiles of some rows together: each is gathered, then all are asked for. `all` can be used again. False when memory
 * is exhausted.
 */
bool offcpu_gather_lengths(struct offcpu_lengths *all, const struct offcpu_profile *profile, const struct offcpu_row *row);
struct offcpu_quantiles offcpu_take_quantiles(struct offcpu_lengths *all, const struct offcpu_sum *sum);

/* One wait, for --events. */
struct offcpu_event {
	int64_t time_ns; /* CLOCK_REALTIME, when it began */
	uint64_t duration_ns;
	uint64_t runnable_ns;
	bool unfinished;               /* the recording ended before it did */
	const struct offcpu_row *what; /* pid, tid, name, state, stacks and waker of the wait; its sum is not used */
};

/* Adds waits to others. */
static inline void offcpu_sum_merge(struct offcpu_sum *sum, const struct offcpu_sum *more)
{
	if (!sum->count || (more->count && more->min_ns < sum->min_ns))
		sum->min_ns = more->min_ns;
	if (more->max_ns > sum->max_ns)
		sum->max_ns = more->max_ns;
	sum->count += more->count;
	sum->unfinished += more->unfinished;
	sum->total_ns += more->total_ns;
	sum->runnable_ns += more->runnable_ns;
}

static inline void offcpu_sum_add(struct offcpu_sum *sum, uint64_t duration_ns, uint64_t runnable_ns)
{
	const struct offcpu_sum one = {
		.count = 1,
		.total_ns = duration_ns,
		.max_ns = duration_ns,
		.min_ns = duration_ns,
		.runnable_ns = runnable_ns,
	};

	offcpu_sum_merge(sum, &one);
}

#endif
