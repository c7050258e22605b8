/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_H
#define STAKEOUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * libstakeout: stacks of running processes, names of addresses, and where threads wait. See libstakeout(3).
 *
 * Errors: a function that returns int gives 0 or a negative errno; stakeout_error() then has a sentence that says why.
 * Nothing is printed, and nothing ends the program.
 *
 * Growth: structs start with their size, which the caller sets, so that later versions can add fields at the end. Of a
 * struct that is filled in here only as much is written as the caller has, and what is not known is 0 or NULL. Options of
 * a newer header than the library, if they are not 0, are refused with -E2BIG. An options pointer may be NULL. An index
 * behind the last gives -ERANGE.
 *
 *	struct stakeout_thread thread = {.size = sizeof(thread)};
 *
 * Ownership: what is created here is freed by the function of its name, in any order; NULL is legal. Strings and stacks
 * live as long as the snapshot, the symbols or the waits that they were got from.
 *
 * Threads: any number of them may work at the same time, each with a struct stakeout of its own. One struct stakeout, and
 * all that was made with it and is not finished (symbols, waits that were not stopped), is for one thread at a time. A
 * snapshot, and waits after stakeout_waits_stop(), do not change: any number of threads may read them at a time. After a
 * fork() only the parent may go on.
 *
 * What the whole process shares:
 * - Patience. What may never answer, memory and files with a server behind them (NFS, FUSE), is waited for as long as
 *   `patience_ns` says since the last call of any thread began; a file system that did not answer is not asked again
 *   until the last struct stakeout is freed. Notes say so. stakeout_interrupt() ends the waiting of all threads.
 * - Signals. While threads of a target are held, for microseconds, the action for the real-time signal 55 is replaced, and
 *   while files are mapped that for SIGBUS; signals of others are passed on, and the last one done puts back what was there.
 *   A held thread looks like a child to wait(2): who waits for any child (-1) may be told that it has stopped.
 * - Threads of the library's own, with all signals blocked but those of faults, and child processes that send no signal
 *   when they end, and that wait(2) sees only with __WALL. None outlives what it works for, unless it cannot be ended.
 * - Recording waits raises the soft limit of open descriptors, up to the hard one, and libbpf is silent while it loads.
 * - STAKEOUT_DEBUGINFOD sets DEBUGINFOD_TIMEOUT and DEBUGINFOD_RETRY_LIMIT in the environment: call stakeout_create() with it
 *   before there are other threads. libdebuginfod stays loaded.
 *
 * Rights: what other users' processes and files have in them is read in the calling process, with all of its rights.
 * stakeout(1) does most of that in a process without any; a program that has more rights than this needs should do the same.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define STAKEOUT_EXPORT __attribute__((visibility("default")))

struct stakeout;
struct stakeout_snapshot;
struct stakeout_stack;
struct stakeout_symbols;
struct stakeout_waits;

/* Setting up */

enum {
	STAKEOUT_CACHE = 1 << 0,       /* keep what was read of debug info on disk, for the next time */
	STAKEOUT_DEBUGINFOD = 1 << 1,  /* ask the servers of $DEBUGINFOD_URLS for what is missing */
	STAKEOUT_NO_DEMANGLE = 1 << 2, /* names as the linker has them */
};

struct stakeout_options {
	size_t size;
	uint64_t flags;
	uint64_t patience_ns;  /* 0: two seconds */
	const char *cache_dir; /* NULL: $XDG_CACHE_HOME/stakeout, else $HOME/.cache/stakeout */
	uint64_t cache_bytes;  /* at most; 0: 256 MiB */
	uint64_t debuginfod_timeout_s; /* without a byte; 0: 60 */
};

/* -ENOMEM, -EINVAL or -E2BIG. A cache or server that cannot be used is left out: notes say why. */
STAKEOUT_EXPORT int stakeout_create(const struct stakeout_options *options, struct stakeout **out);
STAKEOUT_EXPORT void stakeout_free(struct stakeout *stakeout);

/* Why the last call for this one failed; "" if it did not. Good until the next call. */
STAKEOUT_EXPORT const char *stakeout_error(const struct stakeout *stakeout);

/* Whatever waits, in all threads, ends as if its time were over. A signal handler may call it. */
STAKEOUT_EXPORT void stakeout_interrupt(struct stakeout *stakeout);

/* Of the library, such as "0.1.0". */
STAKEOUT_EXPORT const char *stakeout_version(void);

/* Stacks: innermost frame first, inlined calls as frames of their own. Words are those of the program's JSON schemas. */

enum {
	STAKEOUT_FRAME_INLINED = 1 << 0,        /* into the next frame that is not */
	STAKEOUT_FRAME_HAS_OFFSET = 1 << 1,     /* function_offset is known */
	STAKEOUT_FRAME_RETURN_ADDRESS = 1 << 2, /* pc is behind a call, and what is named is the call */
	STAKEOUT_FRAME_GUESSED = 1 << 3,        /* found without unwind information: found_by says how */
};

struct stakeout_frame {
	size_t size;
	uint64_t pc; /* of a runtime's frame: that of the native one in whose place it is */
	uint64_t flags;
	const char *kind; /* "native", "kernel", "signal"; of runtimes "python", "java", "js", "stub"; "marker" is no frame */
	const char *function;
	uint64_t function_offset; /* of pc from its start */
	const char *module;       /* path of the file, as the target sees it */
	const char *build_id;     /* hexadecimal */
	uint64_t module_offset;   /* of pc, in the file's own terms: what addr2line takes */
	const char *file;
	uint32_t line;
	uint32_t column;
	const char *found_by;      /* "cfi", "frame_pointer", "code", "scan" */
	const char *symbol_source; /* where the name is from: "symtab", "dwarf" … */
	const char *tier;          /* how a runtime executes it: "interpreted", "C2" … */
	const char *problem;       /* why the module has no symbols or no debug info, */
	const char *help;          /* and what would help */
};

STAKEOUT_EXPORT size_t stakeout_stack_depth(const struct stakeout_stack *stack); /* 0 for NULL */
STAKEOUT_EXPORT int stakeout_stack_frame(const struct stakeout_stack *stack, size_t index, struct stakeout_frame *out);

/* Snapshots: processes, their threads, and the stacks of these */

enum {
	STAKEOUT_CHILDREN = 1 << 0,    /* also the processes that it has started, and those that these have */
	STAKEOUT_NO_KERNEL = 1 << 1,   /* no kernel stacks */
	STAKEOUT_NO_RUNTIMES = 1 << 2, /* only native frames: neither Python nor Java nor JavaScript */
	STAKEOUT_RAW = 1 << 3,         /* also the native frames that those of runtimes stand for */
	STAKEOUT_NO_NAMES = 1 << 4,    /* only unwind: no kernel stacks, no runtimes, frames have pc, kind, flags and found_by */
	STAKEOUT_STOP_NONE = 1 << 5,   /* hold no thread, not even those that run: they are not captured */
	STAKEOUT_STOP_ALL = 1 << 6,    /* hold the whole process once */
	STAKEOUT_STOP_HOLD = 1 << 7,   /* hold those that run, and take no CPU */
};

struct stakeout_snapshot_options {
	size_t size;
	uint64_t flags;
	const pid_t *tids; /* only these threads; not with STAKEOUT_CHILDREN */
	size_t ntids;
	uint64_t depth;           /* most frames of a stack; 0: 65536 */
	uint64_t stack_bytes;     /* most to copy of one stack; 0: 8 MiB */
	uint64_t stop_timeout_ns; /* how long a thread gets to stop; 0: a second */
};

/*
 * Threads that sleep are read without being stopped, and so are those that run, while threads of the library with real-time
 * priority have their CPUs for microseconds, and the calling thread has such priority for milliseconds; without the right to that
 * they are held. Fails only if there is nothing to show: -ESRCH there is no such process, -EPERM or -EACCES it may not be read,
 * -EINVAL it is a thread.
 */
STAKEOUT_EXPORT int stakeout_snapshot_take(struct stakeout *stakeout, pid_t pid,
					   const struct stakeout_snapshot_options *options,
					   struct stakeout_snapshot **out);
STAKEOUT_EXPORT void stakeout_snapshot_free(struct stakeout_snapshot *snapshot);

struct stakeout_process {
	size_t size;
	pid_t pid;
	int complete;        /* every stack that there is, is whole */
	int consistent;      /* all stacks are of one instant */
	const char *why;     /* they are not */
	const char *name;    /* of the main thread */
	const char *exe;     /* path, as the process sees it */
	size_t nthreads;
	size_t nnotes;
	int64_t time_ns;     /* CLOCK_REALTIME */
	const char *method;  /* where registers came from: "bpf", "proc", "ptrace" */
	size_t nheld;        /* threads that were held, */
	uint64_t max_held_ns; /* the longest for so long */
	const char *kernel_problem; /* why there are no kernel stacks, or no names in them */
};

struct stakeout_thread {
	size_t size;
	pid_t tid;
	int state;           /* a letter, as ps shows it: 'S' */
	int complete;        /* its user stack is whole and not torn; or there is none to be had */
	int held;
	const char *name;
	const char *status;  /* "captured"; or why not: "running", "not_permitted", "exited" … */
	const char *end;     /* why its user stack ends: "complete", "no_unwind_info", "missing_register" … */
	const char *problem; /* a sentence for a stack that is missing or incomplete */
	const struct stakeout_stack *user;
	const struct stakeout_stack *kernel;
	int64_t off_cpu_ns;  /* since it last ran; -1: not known */
	int64_t cpu_ns;      /* that it has run; -1: not known */
	const char *syscall; /* that it is in; NULL: none, or not known */
	const char *runtime; /* that knows it: "python" …, */
	const char *runtime_state; /* and the state in its words */
};

STAKEOUT_EXPORT size_t stakeout_snapshot_processes(const struct stakeout_snapshot *snapshot);
STAKEOUT_EXPORT int stakeout_snapshot_process(const struct stakeout_snapshot *snapshot, size_t process,
					      struct stakeout_process *out);
STAKEOUT_EXPORT int stakeout_snapshot_thread(const struct stakeout_snapshot *snapshot, size_t process, size_t thread,
					     struct stakeout_thread *out);

/* What was left out, which fallbacks were taken, and why. NULL behind the last one. */
STAKEOUT_EXPORT const char *stakeout_snapshot_note(const struct stakeout_snapshot *snapshot, size_t process, size_t note);

/* Names of addresses: of a file, in its own terms; or of a process, as it sees them. */

STAKEOUT_EXPORT int stakeout_symbols_of_file(struct stakeout *stakeout, const char *path, struct stakeout_symbols **out);
STAKEOUT_EXPORT int stakeout_symbols_of_build_id(struct stakeout *stakeout, const char *build_id,
						 struct stakeout_symbols **out);
STAKEOUT_EXPORT int stakeout_symbols_of_process(struct stakeout *stakeout, pid_t pid, struct stakeout_symbols **out);
STAKEOUT_EXPORT void stakeout_symbols_free(struct stakeout_symbols *symbols);

/*
 * The frames at each address, innermost first, in stacks[i]: at least one, without a function if nothing is known. Many
 * addresses at a time are read on all cores. -ENOMEM.
 */
STAKEOUT_EXPORT int stakeout_symbols_find(struct stakeout_symbols *symbols, const uint64_t *addresses, size_t n,
					  const struct stakeout_stack **stacks);

/* Waits: where threads spend the time in which they do not run */

enum {
	STAKEOUT_WAITS_CHILDREN = 1 << 0,    /* also processes that these have started, or will */
	STAKEOUT_WAITS_NO_KERNEL = 1 << 1,   /* no kernel stacks */
	STAKEOUT_WAITS_NO_USER = 1 << 2,     /* no user stacks */
	STAKEOUT_WAITS_NO_RUNTIMES = 1 << 3, /* as in a snapshot */
	STAKEOUT_WAITS_RAW = 1 << 4,
	STAKEOUT_WAITS_WAKERS = 1 << 5,      /* also who ended them, with stacks */
	STAKEOUT_WAITS_BY_PROCESS = 1 << 6,  /* all threads of all processes of a program together */
};

struct stakeout_waits_options {
	size_t size;
	uint64_t flags;
	uint64_t min_ns; /* only waits at least as long; 0: a millisecond. 1 takes all */
	uint64_t max_ns; /* only waits at most as long; 0: there is no limit */
};

/* Starts at once, by BPF; where that cannot be had waits are estimated from /proc. npids 0: of all processes. */
STAKEOUT_EXPORT int stakeout_waits_start(struct stakeout *stakeout, const pid_t *pids, size_t npids,
					 const struct stakeout_waits_options *options, struct stakeout_waits **out);
STAKEOUT_EXPORT void stakeout_waits_free(struct stakeout_waits *waits);

/* Sleeps for so long, or until the last process has ended (1) or stakeout_interrupt() is called (-EINTR); else 0. */
STAKEOUT_EXPORT int stakeout_waits_sleep(struct stakeout_waits *waits, uint64_t ns);

/* Ends the recording and names its stacks; only then there is something to read. */
STAKEOUT_EXPORT int stakeout_waits_stop(struct stakeout_waits *waits);

struct stakeout_waits_summary {
	size_t size;
	int complete;       /* nothing was lost, every stack is whole, and no time is an estimate */
	int estimate;       /* from /proc: times are multiples of the interval in which it is looked at */
	const char *method; /* "sched_exit", "kprobe", "switch", "proc" */
	int64_t start_ns;   /* CLOCK_REALTIME */
	uint64_t duration_ns;
	uint64_t count;
	uint64_t total_ns;
	uint64_t lost; /* records: notes say of what */
	size_t nwaits; /* to be got one by one, the longest total first */
	size_t nnotes;
};

/* Waits of one thread in one state with the same stacks and waker. */
struct stakeout_wait {
	size_t size;
	pid_t pid; /* 0: of several processes of one program */
	pid_t tid; /* 0: of several threads */
	const char *name; /* of the thread */
	int state;        /* 'S', 'D', or 'R': ready, but without a CPU */
	int idle;         /* the thread only waits for work here */
	const char *cause; /* "lock", "disk", "network" … */
	uint64_t count;
	uint64_t unfinished; /* of these: went on when the recording ended, and count up to there */
	uint64_t total_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t runnable_ns; /* of the total: awake, and without a CPU */
	const struct stakeout_stack *user;
	const struct stakeout_stack *kernel;
	const char *user_problem; /* why it is missing or ends early */
	const char *kernel_problem;
	pid_t waker_pid; /* 0: not known, or not asked for */
	pid_t waker_tid;
	int waker_is_interrupt;
	const char *waker_name;
	const struct stakeout_stack *waker_user;
	const struct stakeout_stack *waker_kernel;
};

STAKEOUT_EXPORT int stakeout_waits_summary(const struct stakeout_waits *waits, struct stakeout_waits_summary *out);
STAKEOUT_EXPORT int stakeout_waits_wait(const struct stakeout_waits *waits, size_t index, struct stakeout_wait *out);
STAKEOUT_EXPORT const char *stakeout_waits_note(const struct stakeout_waits *waits, size_t note);

#ifdef __cplusplus
}
#endif

#endif
