/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_PARKED_H
#define STAKEOUT_WAIT_PARKED_H

#include "base/map.h"
#include "target/ask.h"
#include "wait/locks.h"

/*
 * Threads that wait for ever for a mutex that inherits priorities: the kernel has refused it, as that would be a deadlock, or as its owner has ended.
 * pthread_mutex_lock() has no error for that, so glibc waits for a word on the stack that nobody will ever change, and which tells nothing. The mutex
 * is one of those that the function's registers and the stack point to.
 */

/* For the process as a whole: what may be such mutexes. Nothing, if there is no such thread. */
extern const struct asker parked_asker;

/*
 * Takes the mutex for what `f` waits for, if it is such a wait. `again`: of the addresses that were read after all threads, which of the snapshot's copies
 * it is. False: it is none, or which mutex is not known.
 */
bool parked_find(struct futex_wait *f, const struct u64map *again, struct lock *out);

/* Whether it is such a wait, or one for a word on its own stack that looks so. */
bool parked_is(const struct snapshot *snap, const struct snap_thread *thread);

#endif
