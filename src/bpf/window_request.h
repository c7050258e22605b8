/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_WINDOW_REQUEST_H
#define STAKEOUT_BPF_WINDOW_REQUEST_H

#include "bpf/task_record.h"

/*
 * Which threads the window's program is to look at, and what it found. They are where the iterator has seen them: a
 * search for each would take longer than all that is read of it. That they still are is checked.
 */
enum { WINDOW_THREADS = 1024 };

struct window_thread {
	__u64 task; /* in: as in struct task_record */
	__u64 regs;
	__u64 start_ns;
	__u32 gone;  /* out: it is another thread by now */
	__u32 moved; /* out, of the second look: it has run since the first, or was running then */
};

/* Which of them one run is for: several CPUs may share the work. */
struct window_range {
	__u32 first;
	__u32 count;
	__u32 again; /* the second look: has anything moved since the first? */
	__u32 zero;
};

struct window_request {
	struct window_thread threads[WINDOW_THREADS];
	struct task_record records[WINDOW_THREADS]; /* out, of the first look; tid and comm stay empty */
};

#endif
