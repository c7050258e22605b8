/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_CAPTURE_H
#define STAKEOUT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "model/mem.h"
#include "model/snapshot.h"

/*
 * Takes snapshots of one process.
 *
 * A thread that is asleep cannot change its stack, so it is read without being stopped, and a second look at its
 * context-switch counters proves that it slept throughout. Only threads that run are held, together, for the time it
 * takes to copy their registers and stacks. docs/internals.md tells why the result is true at one instant.
 */
struct capture;
struct target;

struct thread_reader;

enum stop_mode {
	STOP_AUTO, /* take the CPUs of what runs for a moment; where that cannot be, hold it */
	STOP_ALL,  /* hold the whole process once */
	STOP_NONE, /* hold nothing */
	STOP_HOLD, /* hold what runs */
};

enum source_choice {
	SOURCE_AUTO, /* the BPF iterator, else /proc */
	SOURCE_BPF,
	SOURCE_PROC,
	SOURCE_LIBBPF, /* the BPF iterator as libbpf loads it, which is what the first falls back to */
};

struct capture_options {
	enum stop_mode stop;
	enum source_choice source;
	bool proc_mem;
	bool kernel_stacks;
	uint64_t stack_size;	  /* most bytes to copy per thread */
	unsigned stop_timeout_ms;
	uint64_t window_ns; /* how long CPUs are taken at most; 0: a millisecond */
	bool window_lingers; /* for tests: always that long */
	bool no_waits; /* what tells what threads wait for is not looked at */
	const pid_t *tids; /* only these; NULL: all */
	size_t ntids;

	/*
	 * --ptrace: the whole process is held while on_held is called for each thread, with memory read word by word
	 * through `peek`. It runs in another thread than the caller's, which waits. Before that on_hold says what is about
	 * to be held, each time anew: what was told before is void, and files are
	 * to be opened there, since nothing may wait while threads are held. Both or none are set.
	 */
	int (*on_hold)(void *arg, struct snapshot *snap, struct err *err);
	void (*on_held)(void *arg, struct snapshot *snap, pid_t tid, const struct user_regs *regs, struct mem *peek);
	void *on_held_arg;

	const struct thread_reader *reader; /* NULL: there is none */
	const struct capture *beside; /* another one with these options, whose programs are used, by the same thread; NULL: there is none */
};

/*
 * Who reads more of a thread than its stack while its memory stands still: in the same instant, and proved by the same
 * passes. What it reads through `mem` is kept in snap->copies. All functions are set.
 */
struct thread_reader {
	/* The snapshot has its map; files may be opened. True when it wants to read this process. */
	bool (*begin)(void *arg, struct snapshot *snap);
	/* Before each look at the threads: they may be others than before. */
	void (*refresh)(void *arg);
	/* A thread that sleeps, or is held, and its registers: nothing is allocated here, and no file opened. */
	void (*read)(void *arg, pid_t tid, const struct user_regs *regs, struct mem *mem);
	void *arg;
};

/* The target must outlive it. */
int capture_open(struct target *target, const struct capture_options *options, struct err *err, struct capture **out);
void capture_close(struct capture *capture);

/* Takes one snapshot. Fails only when there is nothing to show; what is partly missing is in the snapshot. */
int capture_take(struct capture *capture, struct err *err, struct snapshot **out);

/*
 * The same for several processes, at one instant if that can be (capture.instant_ns is equal then): each has a snapshot of its own.
 * Not for STOP_ALL.
 */
struct capture_job {
	struct capture *capture;
	int rc; /* out, with err; and snap if it is 0 */
	struct err err;
	struct snapshot *snap;
};

void capture_take_all(struct capture_job *jobs, size_t n);

/*
 * Asks for each thread what else is to be copied of the target's memory (target/ask.h). What was read counts only for
 * threads that were captured asleep and have not run since; of the others nothing more is read.
 */
struct asker;
int capture_ask(struct capture *capture, struct snapshot *snap, const struct asker *asker, void *state, struct err *err);

/*
 * Looks at all threads once more. Who has not run since it was copied has stood still until now, and so all that was read meanwhile, for
 * whatever purpose, was read while it did: its still_in becomes the number of this look, which is the highest.
 */
void capture_note_stillness(struct capture *capture, struct snapshot *snap);

/* After a pass over the threads: true when the thread was captured while it did not run, without being held, and has not run since. */
bool capture_unmoved(const struct capture *capture, const struct snap_thread *thread);

/*
 * Holds the given threads of a snapshot once more to learn the registers that /proc does not tell. A thread that has
 * run since, or that would notice the stop by an EINTR, keeps its old registers; notes say what was done.
 */
int capture_complete_registers(struct capture *capture, struct snapshot *snap, struct snap_thread **threads,
			       size_t nthreads, struct err *err);

#endif
