/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_WAITS_H
#define STAKEOUT_OFFCPU_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "bpf/offcpu_record.h"
#include "model/offcpu.h"
#include "model/stack.h"
#include "offcpu/feed/tables.h"

/* Waits as BPF or the sampler reports them, added up by thread and stack. Nothing is named here. */
struct waits;

/* A stack in terms that outlive its process. */
struct wait_stack {
	struct offcpu_stack_id id;
	size_t number;		  /* from 0 on, in the order in which they came */
	uint32_t set;		  /* the set of mappings that its addresses are in; 0: not known */
	pid_t tgid;		  /* the process that had it first */
	bool is_shared;		  /* others had it too */
	uint64_t *kernel;	  /* addresses, innermost first */
	const char **kernel_text; /* instead of them, or NULL */
	uint32_t nkernel;
	int32_t kernel_error; /* -errno, or 0 */
	struct raw_stack user; /* pc: a place (tables.h), or the address where that is in no known file */
	uint64_t *addresses;   /* of the user frames, as the process had them */
	uint32_t runtime_process; /* whose runtimes name frames of it: runtime_processes.h; 0: none do */
	uint32_t runtime_end;  /* enum offcpu_runtime_end */
	uint32_t user_end;     /* enum offcpu_end */
	const char *user_error; /* in words, when user_end does not say enough; or NULL */
	const char *kernel_error_words; /* likewise */
	uint32_t copy; /* the number of a copy: stack_copies.h; 0: none */
};

/* A stack as it was taken; user frames have the addresses of their process. */
struct stack_sample {
	struct offcpu_stack_id id;
	const uint64_t *kernel;
	const char *const *kernel_text; /* instead of addresses, when only text is known; copied */
	uint32_t nkernel;
	int32_t kernel_error;
	const struct raw_frame *user;
	uint32_t nuser;
	const struct runtime_frame *runtime;
	uint32_t nruntime;
	uint32_t runtime_end;
	uint32_t runtime_process; /* as in struct wait_stack */
	uint32_t user_end;
	const char *user_error; /* or NULL; copied */
	const char *kernel_error_words; /* likewise */
	uint32_t set;		/* the set of mappings that the addresses are in; 0: not known */
	const uint64_t *places; /* of the user frames, as in struct wait_stack, when there are no such sets; or NULL */
	uint32_t copy;		/* as in struct wait_stack */
};

/* Waits with the same key. */
struct wait_row {
	pid_t tgid;
	pid_t tid;
	uint64_t process_start_ns;
	uint64_t thread_start_ns;
	char state;
	const char *name; /* the thread's last name: changes in place with the next wait */
	struct wait_stack *stack; /* NULL: it was lost, or never taken */
	bool has_waker;
	bool interrupt;   /* the waker is not a thread but an interrupt on an idle CPU */
	pid_t waker_tgid; /* 0: not a thread that can be seen */
	pid_t waker_tid;
	const char *waker_name;
	struct wait_stack *waker_stack;
	struct offcpu_sum sum;
};

#define OFFCPU_OUTSIDE_NAME "outside of this pid namespace"
#define OFFCPU_INTERRUPT_NAME "interrupt" /* of a waker that is not a thread */

struct waits_options {
	size_t max_rows; /* and threads */
	size_t max_stack_bytes; /* 0: no limit */
};

/* `tables` must outlive it; NULL when every stack has places. NULL when memory is exhausted. */
struct waits *waits_create(struct tables *tables, const struct waits_options *options);
void waits_destroy(struct waits *waits);

/*
 * Takes a record of kind OFFCPU_STACK or OFFCPU_WAIT; records that are cut short are counted as lost. The stack, if it is a
 * new one that is kept.
 */
struct wait_stack *waits_add_stack(struct waits *waits, const void *record, size_t len);
struct wait_stack *waits_put_stack(struct waits *waits, const struct stack_sample *sample);

/* A stack was walked again, and has these native frames and this end: all else of the sample is not used. False: no memory. */
bool waits_replace_user(struct waits *waits, struct wait_stack *stack, const struct stack_sample *sample);

/* The row that the wait was added to; NULL when it was lost. */
const struct wait_row *waits_add_wait(struct waits *waits, const void *record, size_t len);

/* Waits that were added up in the kernel; their stacks come before. lengths: NULL when the first waits are all. */
void waits_add_sums(struct waits *waits, const struct offcpu_key *key, const struct offcpu_sums *sums,
		    const struct offcpu_lengths_counted *lengths);

/*
 * Takes a record of kind OFFCPU_RAN. waits_settle_ran() then tells the threads, when all are known, for a recording that
 * began at this time.
 */
void waits_add_ran(struct waits *waits, const void *record, size_t len);
void waits_settle_ran(struct waits *waits, uint64_t begin_ns);

size_t waits_nrows(const struct waits *waits);
const struct wait_row *waits_row(const struct waits *waits, size_t index);
const struct offcpu_lengths *waits_lengths(const struct waits *waits, size_t index); /* of that row */
size_t waits_nstacks(const struct waits *waits);
struct wait_stack *waits_stack(const struct waits *waits, size_t index);
size_t waits_nthreads(const struct waits *waits);
const struct offcpu_thread *waits_thread(const struct waits *waits, size_t index);
uint64_t waits_lost(const struct waits *waits);
uint64_t waits_stacks_lost(const struct waits *waits); /* dropped, over the limit; their rows say so */

#endif
