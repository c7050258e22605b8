/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_THREADS_H
#define STAKEOUT_WAIT_THREADS_H

#include "base/map.h"
#include "model/snapshot.h"

/* The threads of a process as its own memory names them: by number, or by where the C library has what it knows of them. */
struct wait_threads {
	const struct snapshot *snap;
	struct u64map by_number;
	struct u64map by_address; /* tid_address */
};

/* False when memory is exhausted. */
bool wait_threads_init(struct wait_threads *threads, const struct snapshot *snap);
void wait_threads_deinit(struct wait_threads *threads);

/* The number that the process itself has for it; 0: not known. */
uint32_t wait_number_of(const struct snapshot *snap, const struct snap_thread *thread);

/* NULL: there is none. */
const struct snap_thread *wait_thread_numbered(const struct wait_threads *threads, uint32_t number);
const struct snap_thread *wait_thread_at(const struct wait_threads *threads, uint64_t tid_address);

/*
 * What a thread waits for was read while it slept. An owner that did not run then had it all the while; one that was read in a window may
 * have let go of it between the two. A thread that has been woken does not wait any more. Both are of one process, or of processes that were
 * captured together.
 */
bool wait_is_of_one_instant(const struct snap_thread *thread, const struct snap_thread *owner);

#endif
