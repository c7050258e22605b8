/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_TASK_H
#define STAKEOUT_PROC_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/process.h"
#include "proc/task_status.h"

/* One thread as /proc/PID/task/TID shows it. Each function returns 0 or -errno; -ESRCH or -ENOENT: it has ended. */

/* From "status". */
int task_status(const struct process *process, pid_t tid, struct task_status *out);

/*
 * The threads of a process by their numbers, ours and those that they have for themselves, which are others in a pid namespace of
 * their own; 0: it has ended meanwhile.
 */
struct task_numbers {
	struct tid_list ours;
	struct tid_list own;
};

int task_numbers_list(const struct process *process, struct task_numbers *out);
void task_numbers_deinit(struct task_numbers *numbers);

/* Our number of a thread that has this one for itself; 0: there is none. */
pid_t task_numbers_find(const struct task_numbers *numbers, pid_t own);

/*
 * How often the thread got a CPU, and (if wanted) for how long, from "schedstat". It rises when a thread gets one, the counters of context switches
 * when it leaves it. -ENOENT: the kernel does not count.
 */
int task_runs(const struct process *process, pid_t tid, uint64_t *out, uint64_t *cpu_ns);

/* Only the state letter, from "stat": the cheapest look. */
int task_state(const struct process *process, pid_t tid, char *out);

/* When it was created, in clock ticks since boot. */
int task_start(const struct process *process, pid_t tid, uint64_t *out);

/* The CPU of a thread that runs, or is ready to; -1: it is neither. */
int task_cpu(const struct process *process, pid_t tid);

/* The thread has ended: there is nothing to capture. */
static inline bool state_is_dead(char state)
{
	return state == 'Z' || state == 'X';
}

/* True for a thread that the kernel runs for itself in the process (io_uring): it has no user code and no user stack. */
bool task_is_kernel_worker(const struct process *process, pid_t tid);

/* From "syscall". */
struct task_syscall {
	bool running;	 /* on a CPU, or about to be: nothing else is known */
	bool in_syscall; /* else blocked elsewhere, e.g. in a page fault: only sp and pc are known */
	int64_t nr;
	uint64_t args[6];
	uint64_t sp;
	uint64_t pc;
};

int task_syscall(const struct process *process, pid_t tid, struct task_syscall *out);

/*
 * The kernel stack from "stack", innermost first: each line's text after "[<0>] ", interned. Returns the number of
 * frames written (at most `max`) or -errno.
 */
int task_kernel_stack(const struct process *process, pid_t tid, struct arena *arena, const char **out, unsigned max);

#endif
