/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_THREADS_H
#define STAKEOUT_WAIT_THREADS_H

#include "base/map.h"
#include "model/snapshot.h"

/* The threads of a process as its own memory names them: by number, or by where the C library has what it knows of them. */
struct wait_threads {
	const struct snapshot *snap;
	struct u64map by_number; /* that threads have for themselves; empty where it is that of ours */
	struct u64map by_tid;
	struct u64map by_address; /* tid_address */
	uint32_t last_look; /* the highest number of a pass over the threads */
};

/* False when memory is exhausted. */
bool wait_threads_init(struct wait_threads *threads, const struct snapshot *snap);
void wait_threads_deinit(struct wait_threads *threads);

/* The number that the process itself has for it; 0: not known. */
uint32_t wait_number_of(const struct snapshot *snap, const struct snap_thread *thread);

/* NULL: there is none. */
const struct snap_thread *wait_thread_numbered(const struct wait_threads *threads, uint32_t number);
const struct snap_thread *wait_thread_with_tid(const struct wait_threads *threads, pid_t tid); /* as the report has it */
const struct snap_thread *wait_thread_at(const struct wait_threads *threads, uint64_t tid_address);

#endif
