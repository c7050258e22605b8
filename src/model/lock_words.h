/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_LOCK_WORDS_H
#define STAKEOUT_MODEL_LOCK_WORDS_H

#include <stdint.h>

#include "model/wait.h"

/*
 * Words of glibc's locks, by their position; the same on all 64-bit architectures. Mutex: 0 state, 1 count, 2 owner, 3 users,
 * 4 kind. Lock for readers and writers: 0 readers, 1 writers, 2 and 3 futexes, 4 and 5 unused, 6 writer, 7 shared. FILE's: 0 state, 1 count,
 * 2 and 3 the owner's descriptor.
 */
enum {
	MUTEX_COUNT = 1, MUTEX_OWNER = 2, MUTEX_USERS = 3, MUTEX_KIND = 4, MUTEX_WORDS = 5,
	RWLOCK_READERS = 0, RWLOCK_PHASE = 2, RWLOCK_WRITERS = 3, RWLOCK_UNUSED = 4, RWLOCK_WRITER = 6, RWLOCK_SHARED = 7,
	STREAM_OWNER = 2, STREAM_WORDS = 4,
};

/* Values of a futex that is waited for: of a mutex or a stream, and of either futex of a lock for readers and writers. */
enum { LOCKED_AND_AWAITED = 2, READ_PHASE = 2, WRITE_PHASE = 3 };

enum { INCONSISTENT = 0x3fffffff }; /* in place of the owner of a robust mutex: that one has died, and the next has it */

/* Of a stream of musl's, in the word that has its owner's number. */
enum { MUSL_STREAM_AWAITED = 0x40000000 };

enum { WAIT_WORDS = WAIT_BYTES / 4, MAX_OWNER_NUMBERS = 2 };

/*
 * The numbers that the owner of a lock may have, from the arguments of the futex() that a thread is in, and from the memory there, 0 where it could
 * not be read. Which kind of lock it is, is found out later (wait/locks.h). Returns how many there are.
 */
unsigned lock_owner_numbers(uint32_t op, uint32_t value, const uint32_t words[WAIT_WORDS], uint32_t out[MAX_OWNER_NUMBERS]);

#endif
