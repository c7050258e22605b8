/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_OFFCPU_RECORD_H
#define STAKEOUT_BPF_OFFCPU_RECORD_H

/* What the off-CPU programs and their loader share: records in the ring buffer, tables, counters. */

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

#include "bpf/runtime_layout.h"
#include "bpf/task_record.h"
#include "bpf/wait_bucket.h"

enum {
	OFFCPU_KERNEL_FRAMES = 127, /* the kernel's own limit of frames */
	OFFCPU_USER_FRAMES = 256,
	OFFCPU_COMM = 16,
	OFFCPU_MAX_SUMS = 1 << 17, /* rows that are added up in the kernel */
	OFFCPU_MAX_LENGTHS = 1 << 14, /* of these, the ones with more waits than the next says */
	OFFCPU_FIRST_WAITS = 44,
	OFFCPU_MAX_MAPPINGS = 4096, /* of one process */
	OFFCPU_FOUND_MAPPINGS = 128, /* of one process, in a set that BPF has made */
	OFFCPU_FOUND_SLOTS = 1 << 14, /* for all of those: behind the loader's in `mappings` */
	OFFCPU_COPY_BYTES = 16 << 10, /* of a stack that is sent as it was, */
	OFFCPU_COPY_PIECE = 512,      /* in pieces, each in memory or not */
	OFFCPU_COPIES_BYTES = 1 << 20, /* of all those */
};

enum offcpu_kind {
	OFFCPU_WAIT = 1,	/* struct offcpu_wait */
	OFFCPU_STACK = 2,	/* struct offcpu_stack: before the first wait that has it */
	OFFCPU_NEED_MAPS = 3,	/* struct offcpu_process: its tables are missing or too old */
	OFFCPU_EXEC = 4,	/* struct offcpu_process */
	OFFCPU_EXIT = 5,	/* struct offcpu_process: the last thread has ended */
	OFFCPU_RAN = 6,		/* struct offcpu_ran: a thread has ended */
	OFFCPU_FOUND = 7,	/* struct offcpu_found: before the first stack that was walked with it */
	OFFCPU_COPY = 8,	/* struct offcpu_copy: before the stack that it is of */
};

/* The id of a stack: two hashes of its frames. 0, 0: no stack. Those made by BPF have an odd low half. */
struct offcpu_stack_id {
	__u64 low;
	__u64 high;
};

#define OFFCPU_STACK_BEFORE 2 /* the low half for a wait that began before stacks were taken */
#define OFFCPU_STACK_EARLY 4  /* the same for the waker of a wait that was still too short to be reported */
#define OFFCPU_STACK_UNSEEN 6 /* the same for a wait whose end nobody saw, and the stack was to be taken there */

enum offcpu_state {
	OFFCPU_SLEEPING = 'S',
	OFFCPU_UNINTERRUPTIBLE = 'D',
	OFFCPU_RUNNABLE = 'R', /* preempted: it only waited for a CPU */
};

/* What makes two waits the same. */
struct offcpu_key {
	struct offcpu_stack_id stack;
	struct offcpu_stack_id waker_stack;
	__u32 tgid;
	__u32 tid;
	__u32 state; /* enum offcpu_state */
	__u32 waker_tid; /* 0: not known; OFFCPU_INTERRUPT: an interrupt on an idle CPU */
	__u64 process_start_ns; /* when they were created, since numbers are reused; exec() changes neither */
	__u64 thread_start_ns;
};

#define OFFCPU_INTERRUPT 0xffffffffu
#define OFFCPU_OUTSIDE 0xfffffffeu /* a thread that has no number in our pid namespace */

enum offcpu_wait_flag {
	OFFCPU_UNFINISHED = 1 << 0, /* it was not over when the recording ended, and counts up to then */
};

struct offcpu_wait {
	__u32 kind;
	__u32 flags; /* enum offcpu_wait_flag */
	struct offcpu_key key;
	__u64 start_ns; /* CLOCK_MONOTONIC */
	__u64 duration_ns;
	__u64 runnable_ns; /* its last part, from the wake-up to getting a CPU; all of it when preempted */
	__u32 waker_tgid;
	__u32 stack_cut; /* only while BPF works on it: see struct thread_state */
	char comm[OFFCPU_COMM];
	char waker_comm[OFFCPU_COMM];
};

/* Waits with the same key, added up in the kernel. */
struct offcpu_sums {
	__u64 count;
	__u64 unfinished;
	__u64 total_ns;
	__u64 max_ns;
	__u64 min_ns;
	__u64 runnable_ns;
	__u32 waker_tgid;
	__u32 stack_missing; /* there was no room for it: it is to be sent again */
	char comm[OFFCPU_COMM]; /* the last one: threads take their names late */
	char waker_comm[OFFCPU_COMM];
	__u32 number; /* of its lengths, when it has more than these */
	__u8 first[OFFCPU_FIRST_WAITS]; /* the buckets of its first waits */
};

/* How many of the waits of a row are in each bucket, after the first ones. */
struct offcpu_lengths_counted {
	__u32 counts[OFFCPU_BUCKETS];
};

/*
 * A wait that is not over at the end. It has no stacks, but a count of how often its thread got a CPU, which tells
 * whether stacks read from outside belong to this wait.
 */
struct offcpu_open {
	struct offcpu_wait wait;
	__u64 runs;
};

/* How long a thread has been on a CPU since the recording began, or the thread did. */
struct offcpu_ran {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u32 zero;
	__u64 thread_start_ns;
	__u64 ran_ns;
	__u64 until_ns; /* its end, or that of the recording */
};

/* How a user stack ended. */
enum offcpu_end {
	OFFCPU_END_COMPLETE = 0,
	OFFCPU_END_NO_TABLES = 1,   /* its process or a mapping is not known yet, or over the limits */
	OFFCPU_END_NO_UNWIND = 2,   /* no CFI, and the frame pointer leads nowhere */
	OFFCPU_END_UNSUPPORTED = 3, /* CFI that the tables cannot hold */
	OFFCPU_END_FAULT = 4,	    /* a stack page is not resident */
	OFFCPU_END_DEPTH = 5,	    /* OFFCPU_USER_FRAMES */
	OFFCPU_END_NO_PROGRESS = 6,
	OFFCPU_END_NO_USER = 7, /* a kernel thread, no memory of its own, or user stacks were not asked for */
	OFFCPU_END_32BIT = 8,	/* 32-bit code: only the innermost frame */
	OFFCPU_END_NOT_CODE = 9, /* the return address, which is left out, is not in executable memory */
	OFFCPU_END_MANY_MAPPINGS = 10, /* not in the first OFFCPU_MAX_MAPPINGS mappings, and the process has more */
	OFFCPU_END_SWITCHED = 11, /* Go's runtime has changed stacks, and what it keeps of that was not found */
};

/* Followed by nkernel and then nuser addresses, innermost first. User addresses have marks in their high bits. */
#define OFFCPU_BY_FRAME_POINTER (1ull << 63) /* found by frame pointer */
#define OFFCPU_INTERRUPTED (1ull << 62)	     /* by a signal, whose trampoline precedes it: not a return address */
#define OFFCPU_BY_CODE (1ull << 61)	     /* found by following the code to its return */
#define OFFCPU_RESUMES (1ull << 60)	     /* where it goes on later: not a return address either */
#define OFFCPU_MARKS (OFFCPU_BY_FRAME_POINTER | OFFCPU_INTERRUPTED | OFFCPU_BY_CODE | OFFCPU_RESUMES)

struct offcpu_stack {
	__u32 kind;
	__u32 set; /* the mappings that it was walked with, which name its user frames; 0: none were known */
	struct offcpu_stack_id id;
	__s32 kernel_error; /* -errno, or 0 */
	__u32 user_end;	    /* enum offcpu_end */
	__u32 nkernel;
	__u32 nuser;
	__u32 nruntime;	   /* frames of runtimes behind those: struct offcpu_runtime_frame */
	__u32 runtime_end; /* enum offcpu_runtime_end */
	__u32 tgid;
	__u32 copy; /* the number of a copy; 0: none */
};

struct offcpu_process {
	__u32 kind;
	__u32 tgid;
};

/*
 * A process's executable mappings: `count` of struct offcpu_mapping from `first`, by rising address. A child has those
 * of its parent until it has its own, so a set may outlive the process it was made for: each mapping says which set it
 * belongs to, and one whose place was given to another set is unknown from then on.
 */
struct offcpu_maps {
	__u32 first;
	__u32 count;
	__u32 set; /* never 0 */
};

struct offcpu_mapping {
	__u64 start;
	__u64 end;
	__u64 bias; /* address of the target - bias = unwind_row.pc */
	__u32 object; /* number of the table; OFFCPU_NO_OBJECT: code without tables */
	__u32 nrows;  /* 0: likewise */
	__u32 set;
	__u32 serial; /* of the table: its number may be another file's by now */
};

#define OFFCPU_NO_OBJECT 0xffffffffu

/*
 * A set that BPF has made, of what it found mapped in the process: followed by `count` of struct offcpu_mapping, by rising
 * address. It has only code whose file is known. Its number has OFFCPU_FOUND_SET; its slots are given to another set when
 * all others have been used.
 */
struct offcpu_found {
	__u32 kind;
	__u32 tgid;
	__u32 set;
	__u32 count;
	__u32 first; /* of its slots */
	__u32 zero;
};

#define OFFCPU_FOUND_SET (1u << 31)

/*
 * What is mapped, as the kernel knows it. The address of an inode is that of one file for as long as somebody has this
 * open, which the loader does; when its contents change, so does its time. Numbers of devices and inodes would not do: a
 * file system may show other ones to user space, or use the same twice. Both are 0 for the vDSO.
 */
struct offcpu_file {
	__u64 inode; /* of the vDSO: what the kernel tells several by */
	__u64 changed_s;
	__u64 page; /* of the file, where the mapping starts */
	__u32 changed_ns;
	__u32 zero;
};

/*
 * A stack that leads to a file whose table is not made yet, as it was: the loader walks it later. Followed by `npieces` of
 * memory from `start` on, and by `count` of struct offcpu_code, by rising address.
 */
struct offcpu_copy {
	__u32 kind;
	__u32 tgid;
	__u32 number; /* from 1 on */
	__u32 count;
	__u32 npieces;
	__u32 present; /* a bit for each piece: it was in memory, unlike a page that is reserved for large variables */
	__u64 start;   /* a multiple of OFFCPU_COPY_PIECE */
	__u64 regs[TASK_RECORD_REGS];
};

/* A mapping of code from a file. */
struct offcpu_code {
	__u64 start;
	__u64 end;
	struct offcpu_file file;
};

/* What the loader knows of a file. */
struct offcpu_file_code {
	__u64 shift;  /* start of the mapping + shift = offcpu_mapping.bias */
	__u32 object; /* as in struct offcpu_mapping, but always the number of the file */
	__u32 nrows;
	__u32 serial;
	__u32 zero;
};

/* A process to watch. */
enum offcpu_target {
	OFFCPU_TARGET_UNSEEN = 1,
	OFFCPU_TARGET_LISTED = 2, /* the iterator has shown one of its threads */
};

/* For tests: task storage is refused as if its CPU were busy with some other, a program is not run, or the kernel older. */
enum offcpu_pretence {
	OFFCPU_BUSY_LEAVING = 1 << 0, /* when a thread leaves its CPU */
	OFFCPU_BUSY_BACK = 1 << 1,    /* when it is back, as before Linux 6.2 */
	OFFCPU_BUSY_NOTING = 1 << 2,  /* when the threads that wait already are noted */
	OFFCPU_BUSY_AT_TIMES = 1 << 3, /* not always then, but in all orders */
	OFFCPU_UNSEEN_BACK = 1 << 4,   /* nobody is told that a thread is back */
	OFFCPU_NEVER_FINDS = 1 << 5,   /* BPF cannot look at what is mapped, as before Linux 6.7 */
};

/* Every loss by name; shown by name in reports. */
enum offcpu_lost {
	OFFCPU_LOST_WAITS,	 /* the ring buffer was full */
	OFFCPU_LOST_STACKS,	 /* the same, for a stack */
	OFFCPU_LOST_STATE,	 /* no room to note when a thread left its CPU */
	OFFCPU_LOST_REQUESTS,	 /* the tables of a process could not be asked for */
	OFFCPU_LOST_RESUMES,	 /* nobody saw when a thread came back, and then the recording ended */
	OFFCPU_LOST_PROCESSES,	 /* no room for one more process to watch */
	OFFCPU_LOST_ASKED,	 /* no room to ask for one more process */
	OFFCPU_LOSSES,
};

static_assert(sizeof(struct offcpu_key) == 64, "offcpu_key has no hidden padding");
static_assert(sizeof(struct offcpu_wait) == 136, "offcpu_wait has no hidden padding");
static_assert(OFFCPU_BUCKETS <= 256, "a bucket fits into a byte");
static_assert(sizeof(struct offcpu_sums) == 136, "offcpu_sums has no hidden padding");
static_assert(sizeof(struct offcpu_stack) == 56, "offcpu_stack has no hidden padding");
static_assert(sizeof(struct offcpu_open) == sizeof(struct offcpu_wait) + 8, "offcpu_open has no hidden padding");
static_assert(sizeof(struct offcpu_ran) == 40, "offcpu_ran has no hidden padding");
static_assert(sizeof(struct offcpu_maps) == 12, "offcpu_maps has no hidden padding");
static_assert(sizeof(struct offcpu_mapping) == 40, "offcpu_mapping has no hidden padding");
static_assert(sizeof(struct offcpu_found) == 24, "offcpu_found has no hidden padding");
static_assert(sizeof(struct offcpu_file) == 32, "offcpu_file has no hidden padding");
static_assert(sizeof(struct offcpu_copy) == 32 + 8 * TASK_RECORD_REGS, "offcpu_copy has no hidden padding");
static_assert(OFFCPU_COPY_BYTES / OFFCPU_COPY_PIECE <= 32, "each piece has a bit");
static_assert(sizeof(struct offcpu_code) == 48, "offcpu_code has no hidden padding");
static_assert(sizeof(struct offcpu_file_code) == 24, "offcpu_file_code has no hidden padding");

/* Where in a signal frame, at sp, the kernel saved the registers that a walk needs. */
struct offcpu_signal_frame {
	__u32 pc;
	__u32 sp;
	__u32 fp;
	__u32 link; /* the link register; rdi on x86_64: see unwind_row.h */
};

#endif
