/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_SNAPSHOT_H
#define STAKEOUT_MODEL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/vec.h"
#include "model/container.h"
#include "model/descriptor.h"
#include "model/maps.h"
#include "model/mem.h"
#include "model/notes.h"
#include "model/thread_facts.h"

/*
 * A snapshot is what capture took from the process, and nothing else: registers, stack bytes, kernel addresses,
 * the memory map. Later stages only read it; it can be saved and replayed (model/snapfile.h).
 */

/* Bytes copied from the target: [start, start + len). */
struct mem_copy {
	uint64_t start;
	uint64_t len;
	uint64_t region_end; /* end of the mapping it lies in: beyond start + len the copy was cut short */
	uint8_t *data;
	bool unanswered; /* it ends where somebody else has to deliver what follows, and did not; not saved */
};

/* Bytes of [address, address + len) that the copy holds from `address` on; returns how many. */
size_t mem_copy_read(const struct mem_copy *copy, uint64_t address, void *buf, size_t len);

/* Where a thread's signal handlers run when not on its ordinary stack (sigaltstack). */
struct altstack {
	bool known; /* else start and len mean nothing */
	uint64_t start;
	uint64_t len; /* 0: there is none */
};

enum thread_status { /* append-only: written to saved snapshots */
	THREAD_CAPTURED = 0,
	THREAD_RUNNING = 1,	   /* --stop=none and it was running */
	THREAD_TRACED = 2,	   /* it was running and another tracer holds it */
	THREAD_STOP_TIMEOUT = 3,   /* it did not stop in time (state D) */
	THREAD_EXITED = 4,	   /* it ended during the capture */
	THREAD_ZOMBIE = 5,	   /* it has ended and waits to be reaped */
	THREAD_NOT_PERMITTED = 6,
	THREAD_KERNEL = 7,	   /* a kernel thread: it has no user stack */
	THREAD_UNREADABLE = 8,	   /* registers known, stack memory not */
	THREAD_32BIT = 9,	   /* 32-bit code is not walked */
};

/* How the copy relates to the instant of the snapshot. */
enum thread_capture { /* append-only: written to saved snapshots */
	CAPTURE_NONE = 0,
	CAPTURE_ASLEEP = 1, /* not stopped: it did not run between the two passes */
	CAPTURE_HELD = 2,   /* stopped by ptrace for pause_ns */
	CAPTURE_MOVED = 3,  /* not stopped, and it ran meanwhile: the copy may be torn */
	CAPTURE_QUIET = 4,  /* not stopped: while it was read, others had the CPUs that it could have run on */
};

/* When it is known not to have run, also if it was stopped later for something else. */
enum thread_stillness { /* append-only: written to saved snapshots */
	STILL_NEVER = 0,
	STILL_THROUGHOUT = 1, /* between the two passes, in which all that was read of others was */
	STILL_IN_WINDOW = 2,  /* only while it was read in a window */
};

enum syscall_state {
	SYSCALL_UNKNOWN = 0,
	SYSCALL_NONE = 1, /* not in a system call: running user code, or in a fault */
	SYSCALL_IN = 2,
};

struct snap_syscall {
	enum syscall_state state;
	int64_t nr;
	uint64_t args[6];
};

struct snap_thread {
	pid_t tid;
	pid_t inner_tid; /* as the innermost pid namespace numbers it; 0: that is ours, or it is not known */
	char name[16 + 1];
	char state; /* as in /proc/PID/stat: R S D T t Z I … */
	enum thread_status status;
	enum thread_capture capture;
	const char *why; /* a sentence when status is not THREAD_CAPTURED; NULL otherwise */
	pid_t tracer;	 /* of another tracer, or 0 */
	uint64_t nvcsw;	 /* voluntary and involuntary context switches at capture */
	uint64_t nivcsw;
	uint64_t runs; /* how often it got a CPU, where has_runs; for the live process only, not saved */
	bool has_runs;
	uint64_t start; /* when it was created, by a clock of capture.method's own: numbers are used again; 0: not known, not saved */
	int64_t off_cpu_ns; /* since it last ran; -1 when the kernel does not tell */
	int64_t cpu_ns;     /* how long it has run since it was started; likewise */
	uint64_t pause_ns;  /* how long it was held; 0 when it was not */
	uint32_t retakes;
	struct snap_syscall syscall;
	struct user_regs regs;
	struct altstack altstack; /* not saved */
	uint64_t tid_address;	  /* where its number is cleared when it ends: in its descriptor; 0: not known */
	struct mem_copy stack;
	struct mem_copy interrupted; /* its ordinary stack, when a signal handler runs on another; else empty */
	struct mem_copy waited; /* what it waits for in a system call (capture/waited.h), until that is among the snapshot's copies */
	enum thread_stillness still;
	uint32_t read_in, still_in; /* the passes over the threads: the one that it was read after, and the last that it did not run before */
	bool woken; /* while it was read: it does not wait any more, but has not run since */
	bool still_besides; /* nor has it been woken or run until all was seen that tells what it waits for (capture/besides.h) */
	struct thread_facts facts;

	uint64_t *kernel_pcs;	  /* innermost first; addresses, or NULL when only text is known */
	const char **kernel_text; /* "symbol+0x1/0x2 [module]" as the kernel says it; NULL, or NULLs in it: not known */
	uint32_t nkernel;
};

/* In state R, but it did not run during the capture: it is ready, and other threads have the CPUs. */
static inline bool thread_is_ready(const struct snap_thread *thread)
{
	return thread->state == 'R' && (thread->capture == CAPTURE_ASLEEP || (thread->capture == CAPTURE_QUIET && thread->off_cpu_ns >= 0));
}

struct capture_info {
	const char *method;    /* "bpf", "proc" or "ptrace": where registers came from */
	const char *stop_mode; /* "auto", "all" or "none" */
	uint32_t stopped_threads;
	uint32_t retaken_threads;
	uint64_t max_pause_ns;
	uint32_t windows;     /* how often CPUs were taken for that, */
	uint32_t cpus_taken;  /* how many at most, */
	uint64_t window_ns;   /* and for how long at most */
	int64_t instant_ns;   /* CLOCK_REALTIME: when all was as shown; 0: there was no such instant, or it is not known */
	uint32_t last_look;   /* the pass after the last reading, if something was read after the capture; as read_in of threads; 0: nothing was */
	uint32_t companions;  /* other processes that were captured at this instant */
	uint64_t capture_ns;
	bool consistent;
	const char *inconsistent_why; /* NULL when consistent */
	const char *kernel_stack_error; /* why there are no kernel stacks, for all threads; NULL otherwise */
};

/* Anonymous memory for copies, from mmap(): made ready before a thread is held, so that nothing allocates then. */
struct bulk {
	uint8_t *data;
	size_t size;
};

/* Memory that a later stage asked for during capture: see target/ask.h. */
struct snap_copy {
	pid_t tid; /* read while this thread slept; 0: read while the process ran */
	struct mem_copy copy;
};

/* A language runtime that the process has. What was found in its files is kept: on replay they may be missing. */
struct snap_runtime {
	const char *name;    /* "python" */
	const char *version; /* NULL: not known */
	const char *problem; /* why its frames cannot be read; NULL otherwise */
	uint64_t *facts;     /* whatever its reader wants to remember */
	uint32_t nfacts;
};

enum { MAX_OUTSIDERS = 64 }; /* of one snapshot */

/*
 * A thread that has the number of the owner of a lock, and is none of the snapshot's: one of another process, or one of this process that was not
 * wanted, or not there yet.
 */
struct snap_outsider {
	uint32_t number; /* as memory has it */
	pid_t tid, pid;
	const char *comm; /* of the process; of the thread, if that is one of this process */
	bool same_memory; /* it has that, as between vfork() and exec: it is the owner */
	bool shares_memory; /* it has some mapped in which threads wait for locks that several processes share: it may be the owner */
};

struct snapshot {
	struct arena *arena; /* owns every string and small array below */
	const struct arch *arch;
	pid_t pid;
	pid_t inner_pid; /* likewise */
	struct container container;
	const char *comm;
	const char *exe; /* as the target sees it; NULL for a kernel thread or when not permitted */
	bool kernel_thread;
	bool replayed;	   /* read from a file: no live process behind it */
	int64_t taken_at_ns; /* CLOCK_REALTIME */
	int64_t taken_at_monotonic_ns; /* CLOCK_MONOTONIC; 0: not known */
	/* Its own clocks, which those of its time namespace may be, minus that; CLOCK_UNKNOWN. */
	int64_t monotonic_ahead_ns, boottime_ahead_ns;
	struct capture_info capture;
	VEC(struct snap_thread) threads;
	struct maps maps;
	VEC(struct mem_copy) images; /* ELF images that exist only in memory: the vDSO */
	VEC(struct mem_copy) jit_images; /* ELF objects that JIT compilers announced to debuggers, the latest first */
	VEC(struct snap_copy) copies;    /* what later stages asked for besides */
	VEC(struct snap_runtime) runtimes;
	VEC(struct snap_wait) waits; /* of threads that were blocked in a call on descriptors or files, in their order */
	uint64_t asked_bytes; /* by all of them, also in vain; not in a file */
	struct notes notes; /* of the capture */
	bool partial; /* only some of its threads were wanted */
	VEC(struct snap_outsider) outsiders;

	/* Where threads wait for locks in memory that several processes share. */
	bool has_doubtful_numbers; /* numbers of threads in that memory may be of another pid namespace */
	uint64_t pid_ns, ipc_ns;   /* the process's namespaces; 0: not known; not saved */

	VEC(struct bulk) bulk; /* the mappings that hold the bytes of the copies; munmap()ed at the end */
};

#define CLOCK_UNKNOWN INT64_MIN

/* What a clock of the process said when the snapshot was taken; 0: not known. */
int64_t snapshot_clock(const struct snapshot *snap, clockid_t clock);

/* NULL when memory is exhausted. */
struct snapshot *snapshot_create(pid_t pid, const struct arch *arch);
void snapshot_destroy(struct snapshot *snap);

/* Copies everything. NULL when memory is exhausted. The pointers are good until the next one is added. */
struct snap_runtime *snapshot_add_runtime(struct snapshot *snap, const struct snap_runtime *runtime);
struct snap_runtime *snapshot_find_runtime(const struct snapshot *snap, const char *name); /* NULL: there is none */

/* That of the code which a thread, or the program as a whole (NULL), consists of: snap->arch, or its 32-bit sister. */
const struct arch *snapshot_arch_of(const struct snapshot *snap, const struct snap_thread *thread);

/*
 * Reads what the snapshot holds of the target's memory: the stack of `thread`, then the images. Embed it, init it,
 * pass &m.mem; nothing to free.
 */
struct snapshot_mem {
	struct mem mem;
	const struct snapshot *snap;
	const struct snap_thread *thread; /* may be NULL */
	size_t last; /* copy that had what was wanted: the next word is mostly there, or in one near it */
};

void snapshot_mem_init(struct snapshot_mem *m, const struct snapshot *snap, const struct snap_thread *thread);

#endif
