/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_TASK_ITER_H
#define STAKEOUT_KERNEL_TASK_ITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/task_record.h"
#include "model/snapshot.h"

/* The BPF task iterator: every thread of one process, or of all, in one read, without disturbing any. */
struct task_iter;

/* True when the program was built with BPF. */
bool task_iter_built_in(void);

/*
 * Loads the program; pid 0: for all processes. The error message says what is missing: a permission, BTF, a helper, or
 * BPF in this build.
 */
int task_iter_create(pid_t pid, struct err *err, struct task_iter **out);
void task_iter_destroy(struct task_iter *iter);

/* The same for another process, with the program that is loaded: one thread uses both, in turn. Which is destroyed first does not matter. */
int task_iter_create_beside(const struct task_iter *other, pid_t pid, struct err *err, struct task_iter **out);

/* The same by libbpf, which task_iter_create() falls back to, and why it had to; NULL: it had not. */
int task_iter_create_by_libbpf(pid_t pid, struct err *err, struct task_iter **out);
const char *task_iter_passed_over(const struct task_iter *iter);

struct task_iter_request {
	pid_t only_tid;	    /* 0: all threads */
	bool counters_only; /* only what comes before `files` in each record is shown then, and may be looked at */
	bool kernel_stacks;
};

/* Runs one pass. The records stay in the iterator's buffer until the next pass. */
int task_iter_pass(struct task_iter *iter, const struct task_iter_request *request, struct err *err);

/*
 * The next record of the last pass, NULL at the end; *kernel points at its nkernel addresses. `pos` starts at 0.
 */
const struct task_record *task_iter_next(const struct task_iter *iter, size_t *pos, const __u64 **kernel);

/* The letter that /proc/PID/stat would show. */
char task_record_state(const struct task_record *record);

/* For a record with TASK_HAS_REGS, on this machine's architecture. */
void task_record_registers(const struct task_record *record, struct user_regs *regs);
void task_record_syscall(const struct task_record *record, struct snap_syscall *out);

/* True for a thread that the kernel runs for itself in the process (io_uring): its registers are all but empty. */
bool task_record_is_kernel_worker(const struct task_record *record);

#endif
