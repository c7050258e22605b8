/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CAPTURE_TAKE_H
#define STAKEOUT_CAPTURE_TAKE_H

#include <sched.h>

#include "base/foreground.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/capture.h"
#include "capture/observer.h"
#include "proc/process.h"
#include "target/recorder.h"
#include "target/target.h"

struct file_ahead;

/* A snapshot in the making; shared by the files of this folder only. */

struct capture {
	struct capture_options options;
	struct target *target;
	struct observer *observer;
	struct window_look *look; /* NULL: not needed yet, or another one's is used */
	bool no_windows;	  /* they cannot be had, or did not help */
	bool unstoppable;	  /* its numbers are not ours: see process_check_numbers() */
	bool restless; /* its threads slept for long, and moved: what they wait for is gathered afterwards */
	bool reads;		  /* options.reader wants to read this process */
	struct file_ahead *ahead; /* for what is gathered between the passes; NULL: there is none */
	char observer_note[512];	  /* why the first choice was not taken, or "" */
	struct observations seen; /* by the last pass */
	struct u64map seen_index; /* tid to position in it */
};

/* What is still to be done for a thread of the snapshot being taken. */
enum work {
	WORK_TAKE,    /* must be taken, or taken again */
	WORK_ASLEEP,  /* copied while asleep; the next pass tells whether it slept on */
	WORK_HELD,    /* taken while held in this round */
	WORK_HURRY,   /* runs, or slept only briefly: to be taken in the window of this round */
	WORK_QUIET,   /* taken in it */
	WORK_SETTLED, /* nothing more is to be done */
	WORK_DROP,    /* it ended: it is no part of the snapshot */
};

struct stack_pointer {
	uint64_t sp;
	pid_t tid;
};

struct take {
	struct capture *capture;
	struct snapshot *snap;
	VEC(enum work) work; /* beside snap->threads */
	uint64_t room;       /* bytes that were made ready for options.reader so far */
	VEC(bool) unread;    /* likewise: its stack was just copied, and what options.reader wants was not */
	struct u64map index; /* tid to position in snap->threads */
	VEC(struct stack_pointer) sps; /* those that the last full pass knew, rising */
	uint64_t generation;
	bool maps_fresh; /* read in this round */
	uint64_t recent_ns; /* who slept for less is taken in a window */
	unsigned windows_tried;
	cpu_set_t cpus; /* where threads were seen that ran, in this round and before */
	uint64_t pass_ns; /* how long the last full pass took */
	uint32_t passes;  /* so far, but for those over counters */
	struct window_look **look; /* where the one is that is used */
	int rc;
	int again; /* threads that moved in the last round */
	bool may_gather; /* what tells what threads wait for, between the passes of the first round; */
	bool between;	 /* that is done, */
	bool any_gathered; /* and something was found that the second one has to prove */
	struct err *err;
};

/* Returns -ENOMEM with its sentence. */
int take_out_of_memory(struct take *take);

/* Memory for `size` bytes of copies, the first `ready` of them given pages now; NULL when memory is exhausted. */
struct bulk *take_add_bulk(struct snapshot *snap, size_t size, size_t ready);

void take_set_status(struct snapshot *snap, struct snap_thread *t, enum thread_status status, const char *why);

/* Its stack is in memory that did not answer. */
void take_set_unanswered(struct snapshot *snap, struct snap_thread *t);

/* Appends a thread that is to be taken. */
int take_add_thread(struct take *take, pid_t tid, size_t *index);

bool take_wants(const struct capture *c, pid_t tid);

/*
 * One pass over all threads, or over one (only_tid); what it saw is in c->seen until the next. -EAGAIN when the process has executed another
 * program since the snapshot was begun. An observer that fails is replaced by the next one, where that is allowed.
 */
int take_observe(struct take *take, pid_t only_tid, bool counters_only);

/* When the memory map is known: the program may be a 32-bit one, and what was seen is then told in its own registers. */
int take_choose_arch(struct take *take);

/* The same without a snapshot: only counters. */
int take_look(struct capture *c);

const struct observation *take_find_observed(const struct capture *c, pid_t tid);

/* True when a pass shows that the thread has not run since it was captured asleep. */
bool take_unmoved(const struct observation *o, const struct snap_thread *t);

/* True when the stack pointer is known: the thread was seen off-CPU, or held. */
bool take_has_sp(const struct take *take, const struct snap_thread *t);

/* Reads the memory map again. */
int take_refresh_maps(struct take *take);

/*
 * What there is to copy of the thread's stack, at sp: to the end of its mapping, but neither into its descriptor, which C libraries
 * have at the upper end, nor into the next thread's stack where several share one, and not more than --stack-size. `data` stays NULL
 * and `len` tells how much; 0: nothing. Reads the memory map again, once a round, when sp is not in it.
 */
struct mem_copy take_stack_extent(struct take *take, const struct snap_thread *t, uint64_t sp);
/* The same by the map that is known. */
struct mem_copy take_known_extent(const struct take *take, const struct snap_thread *t, uint64_t sp);

/* reading.c: what options.reader wants of threads. Room for so many of them; false when memory is exhausted. */
bool take_add_room(struct take *take, size_t nthreads, struct recorder_room *room);
/* What was read becomes part of the snapshot, in place of what was read of the same threads before, or with that. Frees the room. */
int take_keep_room(struct take *take, struct recorder_room *room, bool replaces);
int take_do_without(struct take *take); /* when there is no room; never fails */
int take_read_asleep(struct take *take); /* of those that were copied asleep in this round */
int take_begin_reading(struct take *take);
void take_refresh_reader(struct take *take);

/* passive.c */
int take_store_pass(struct take *take);
int take_copy_asleep(struct take *take);
void take_passive(struct take *const *takes, size_t n); /* sets each one's rc */

/* between.c, for a process all of whose threads have slept for long: after the first pass, and when all has been copied. */
void take_begin_between(struct take *take);
void take_gather_between(struct take *take);
/* After the second pass; returns take->rc, or -EAGAIN: one of them has moved, and it is all to be done anew, as something was gathered. */
int take_end_between(struct take *take);

/* kernel_text.c: names the kernel stacks, as far as the kernel tells. */
void take_kernel_text(struct snapshot *snap);

/*
 * hasty.c: if there are threads that run, or have just done so, and there can be a window for them, we hurry from then on, and true
 * says that all are to be seen anew. Then such threads are set aside, and taken in the window.
 */
bool take_prepare_window(struct take *const *takes, size_t n, struct foreground *foreground);
void take_set_aside(struct take *take);
void take_give_back(struct take *take); /* those that no window gave */

/* quiet.c: one window for all of them. False: there was none. */
bool take_quiet(struct take *const *takes, size_t n);

/* hold.c */
int take_hold_running(struct take *take);
int take_stopped(struct take *take);

#endif
