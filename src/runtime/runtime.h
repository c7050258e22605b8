/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_RUNTIME_H
#define STAKEOUT_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/runtime_layout.h"
#include "model/notes.h"
#include "model/snapshot.h"
#include "model/stack.h"
#include "model/trace.h"
#include "target/ask.h"
#include "target/target.h"
#include "unwind/stepper.h"

/* The name of a thread, which is valid during the call. */
typedef void (*runtime_name_fn)(void *arg, pid_t tid, const char *name);

/* How to get through a block of code, which begins at that address. */
typedef void (*runtime_code_fn)(void *arg, uint64_t address, const struct offcpu_stub_rows *rows);

/*
 * A language runtime: what it knows better than the native stack. To add one: a file with its ops, a line in
 * runtime_list (runtime.c), a unit test, and a fuzz target for what it reads of the target's memory.
 *
 * The order of calls for one process: detect; read for each thread when its stack is copied; locks; code, and the stepper as threads
 * are walked; the asker for each thread; names once, for what is no thread's own; frames, thread, waits and tasks when all is copied;
 * and merge once for each different stack when that has names.
 */
struct runtime_ops {
	const char *name;

	/*
	 * Whether the process has it, by its files; *state is then what the other functions get. A live process's is added
	 * to target->snap->runtimes, where a saved one's is found, whose files may be missing. NULL: it cannot be told from
	 * the files, and the stacks tell.
	 */
	bool (*detect)(struct target *target, void **state);
	void (*destroy)(void *state); /* NULL: there is nothing to free */

	/*
	 * Whether the process may have it, by the names in its map, or by a glance at its memory, which may be NULL. If so, and
	 * there is a read(), or locks, it is detected before threads are looked at: what it wants of them is read in the same
	 * instant as their stacks, or soon after that.
	 */
	bool (*is_likely)(const struct maps *maps, struct mem *mem);
	void (*refresh)(void *state); /* before each look at the threads: they may be others. NULL: nothing to do */
	/*
	 * Reads what frames() will want of a thread whose memory stands still; all that is read through `mem` is kept. The
	 * thread may be held meanwhile: nothing is allocated, and no file opened. NULL: nothing.
	 */
	void (*read)(void *state, pid_t tid, struct mem *mem);

	/*
	 * How to walk through code that it made itself, and what to copy of the process as a whole for that, before threads
	 * are walked. NULL: it makes none that needs it; nothing.
	 */
	const struct stepper_ops *stepper;
	const struct asker *code;

	/*
	 * What to copy of the process as a whole to tell what its threads wait for and who has that: asked first, as it counts only for
	 * threads that have not run until it was read. See waits(). NULL: nothing.
	 */
	const struct asker *locks;

	/* Called after detect when the variables of frames are wanted, too. NULL: it does not show any. */
	void (*want_locals)(void *state);

	/* What to copy for a thread besides its stack, when all stacks have been walked. NULL: nothing. */
	const struct asker *asker;

	/* What to copy that is no thread's own, such as names, when all threads have been asked. NULL: nothing. */
	const struct asker *names;

	/*
	 * Appends the runtime's frames of a thread to raw->runtime, innermost first, from what was copied. NULL: its
	 * frames are native ones. False when memory is exhausted.
	 */
	bool (*frames)(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct raw_stack *raw);

	/* What the runtime knows of a thread, if that is one of its own. NULL: nothing. */
	void (*thread)(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct thread_runtime *out);

	/*
	 * What a thread of its own waits for, if that is something of the runtime's: leaves it as it is otherwise. From what was copied;
	 * strings outlive the trace. NULL: it has no locks.
	 */
	void (*waits)(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out);

	/* When it was asked for all threads: what it should have known of them, and does not, as a sentence. NULL: nothing. */
	const char *(*note)(void *state);

	/* Appends the tasks that its threads run in turns, from what was copied. NULL: it has none. False when memory is exhausted. */
	bool (*tasks)(void *state, struct trace_tasks *out);

	/*
	 * For waits over time, whose stacks BPF takes: what BPF needs to tell the runtime's frames; and reads of the live process
	 * what merge() will want of a stack with such frames. NULL: BPF tells none.
	 */
	bool (*describe)(void *state, struct offcpu_runtime *out);
	void (*learn)(void *state, const struct raw_stack *raw);

	/* Tells of code that BPF could not step through when it took that stack, each block once. NULL: nothing. */
	void (*learn_code)(void *state, const struct raw_stack *raw, runtime_code_fn fn, void *arg);

	/*
	 * Tells of each thread of the live process the name that the program gave it. Some may be left out, as it runs on
	 * meanwhile. NULL: they have none.
	 */
	void (*name_threads)(void *state, runtime_name_fn fn, void *arg);

	/*
	 * Likewise for threads that sleep, and are walked without a snapshot: look() comes first, since the process has changed, and
	 * has the map for as long as its threads are walked;
	 * sleeping() appends the frames of a thread, whose memory is read through `mem`, to those that its stepper noted. NULL: nothing
	 * to do. False when memory is exhausted.
	 */
	void (*look)(void *state, const struct maps *maps);
	bool (*sleeping)(void *state, pid_t tid, struct mem *mem, struct raw_stack *raw);

	/*
	 * For a stack that BPF could not walk to its end: gives the frames that BPF told of it (told->runtime) their places
	 * among all its native frames, and leaves them as they are if it returns false: they do not fit, or do not tell.
	 * NULL: it never can.
	 */
	bool (*place)(void *state, const struct raw_stack *native, struct raw_stack *told);

	/* Nothing will be read of the process any more: only what place() and merge() want is kept. NULL: there is nothing else. */
	void (*forget)(void *state);

	/*
	 * Puts what the runtime knows in the place of native frames, or before them where these are to be kept: see
	 * runtime/replace.h. `state` is NULL where the process was not looked at (waits over time). False when memory is
	 * exhausted.
	 */
	bool (*merge)(void *state, const struct raw_stack *raw, bool keep, struct stack *stack);
};

struct runtime {
	const struct runtime_ops *ops;
	void *state;
};

/* The runtimes of one process. */
struct runtimes {
	VEC_FIELDS(struct runtime);
	VEC(struct stepper) steppers;
	bool keep; /* native frames that others stand for */
};

/* Fills in those that the process has; without a target all of them, with no state. False when memory is exhausted. */
bool runtimes_init(struct runtimes *runtimes, struct target *target);
void runtimes_deinit(struct runtimes *runtimes);

/* The variables of frames are to be read, too. */
void runtimes_want_locals(const struct runtimes *runtimes);

/* Whether any of those that read threads, or their locks, may be there; and of those whose frames BPF can tell. */
bool runtimes_are_likely(const struct maps *maps, struct mem *mem);
bool runtimes_are_told(const struct maps *maps, struct mem *mem);
void runtimes_refresh(const struct runtimes *runtimes);
void runtimes_read(const struct runtimes *runtimes, pid_t tid, struct mem *mem);

/* The frames that all of them tell of a thread. */
bool runtimes_frames(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread,
		     struct raw_stack *raw);

/* The same for a sleeping thread of a live process without a snapshot; and what the names of its frames need. */
void runtimes_look(const struct runtimes *runtimes, const struct maps *maps);
bool runtimes_sleeping(const struct runtimes *runtimes, pid_t tid, struct mem *mem, struct raw_stack *raw);
void runtimes_learn(const struct runtimes *runtimes, const struct raw_stack *raw);
void runtimes_forget(const struct runtimes *runtimes);

/* Places for frames of one of them. False: they have none. */
bool runtimes_place(const struct runtimes *runtimes, const struct raw_stack *native, struct raw_stack *told);

/* What all of them can tell BPF of the code that the stack leads through. */
void runtimes_learn_code(const struct runtimes *runtimes, const struct raw_stack *raw, runtime_code_fn fn, void *arg);

/* The names that all of them gave threads. */
void runtimes_name_threads(const struct runtimes *runtimes, runtime_name_fn fn, void *arg);

/* What they know of it: all that the first knows, and of the others what that leaves open. */
void runtimes_thread(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread,
		     struct thread_runtime *out);

/* What the thread waits for, by the first that knows. */
void runtimes_waits(const struct runtimes *runtimes, const struct snapshot *snap, const struct snap_thread *thread, struct runtime_wait *out);

/* What all of them have to say, when all threads were asked for. */
void runtimes_note(const struct runtimes *runtimes, struct notes *notes);

/* The tasks of all of them. */
bool runtimes_tasks(const struct runtimes *runtimes, struct trace_tasks *out);

/* For struct symbolizer_options: `runtimes` is a struct runtimes. */
bool runtimes_merge(void *runtimes, const struct raw_stack *raw, struct stack *stack);

#endif
