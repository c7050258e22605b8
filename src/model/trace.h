/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_TRACE_H
#define STAKEOUT_MODEL_TRACE_H

#include <stdint.h>

#include "model/snapshot.h"
#include "model/stack.h"
#include "model/wait.h"

/* A snapshot with its stacks walked and named: all that a report needs. */

/* What a language runtime knows of a thread. What is not known is NULL or false. Strings outlive the trace. */
struct thread_runtime {
	const char *runtime; /* its name; NULL: no runtime knows the thread */
	const char *version; /* of the runtime */
	const char *name;    /* that the program gave it */
	const char *state;   /* in the runtime's own words */
	const char *problem; /* why its frames are not shown */
	bool has_daemon; /* it is known whether the process waits for it to end: */
	bool is_daemon;
	bool has_gil; /* the runtime has a global lock; then: */
	bool holds_gil;
	bool waits_for_gil;
	bool may_wait_for_gil; /* it is not known whether it waits for it */
};

struct trace_thread {
	const struct snapshot *snap; /* that the thread is in */
	const struct snap_thread *thread;
	struct raw_stack raw;	    /* the user stack as walked; sp of each frame is here */
	const struct stack *user;   /* named, owned by the symbolizer; may be shared; NULL when there is none */
	const struct stack *kernel; /* likewise */
	struct thread_runtime runtime;
	struct runtime_wait told; /* by its runtime, from which `wait` is made */
	struct wait wait;
};

/* What a task that is no thread is about to do. */
enum task_state {
	TASK_SUSPENDED, /* it waits, or its turn has not come */
	TASK_RUNNING,   /* its innermost frames are in the stack of a thread */
	TASK_CREATED,   /* it has not begun */
	TASK_STATE_COUNT,
};

const char *task_state_name(enum task_state state);

/*
 * A task that threads run in turns, such as one of asyncio. What is not known is NULL or 0. Strings and stacks outlive the
 * trace.
 */
struct trace_task {
	const struct snapshot *snap; /* of the process that has it */
	const char *runtime; /* its name, */
	const char *library; /* and what has the tasks: "asyncio" */
	const char *name;
	pid_t tid; /* of the thread that runs it */
	enum task_state state;
	const struct stack *stack; /* innermost first; equal ones are the same */
	const char *awaits;        /* the type of what it waits for; NULL: nothing, so that it can go on */
	const char *awaits_task;   /* the name of that, if it is a task */
	const char *through;       /* the type of what is awaited by the innermost frame and is neither that nor leads to frames */
	const char *problem;       /* why frames are missing */
};

struct trace_tasks {
	VEC_FIELDS(struct trace_task);
	bool cut; /* there are more */
};

/* The name that the program gave the thread, or that the kernel has. */
const char *trace_thread_name(const struct trace_thread *t);

/*
 * The system call that it is in; NULL: it is in none, or in one that is not known. restart_syscall() goes on with one that was interrupted,
 * whose arguments are still in the registers: then it is that, if the functions of the kernel or of the C library tell which, and
 * *restarted is set to true, else to false.
 */
const struct syscall_info *trace_thread_call(const struct trace_thread *t, bool *restarted);

/* One stage after the other: their sum is the total, but for the capture of a saved snapshot, which was done before. */
struct trace_timings {
	uint64_t setup_ns; /* until the capture can begin */
	uint64_t capture_ns;
	uint64_t unwind_ns;
	uint64_t save_ns; /* 0: it was not saved */
	uint64_t symbolize_ns;
	uint64_t total_ns;
};

struct trace {
	const struct snapshot *snap;
	struct trace_timings timings;
	const char *kernel_symbols_error; /* why kernel frames have no names; NULL otherwise */
	VEC(struct trace_thread) threads;
	struct trace_tasks tasks;
	struct notes notes; /* of what came after the capture, whose own are the snapshot's */
};

void trace_deinit(struct trace *trace);

/* True when every stack that exists is whole: what exit code 0 promises. */
bool trace_is_complete(const struct trace *trace);

/*
 * True when the thread's user stack is whole and not torn. A zombie or a kernel thread has none, which is complete.
 */
bool trace_thread_is_complete(const struct trace_thread *t);

#endif
