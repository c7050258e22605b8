/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_LOCKS_H
#define STAKEOUT_RUNTIME_PYTHON_LOCKS_H

#include "model/snapshot.h"
#include "model/wait.h"
#include "runtime/python/layout.h"

/*
 * Which lock object a thread in a futex waits for. Up to 3.12, and for RLocks of 3.13, the futex is a semaphore that the object points
 * to: the object itself is somewhere on the stack of whoever acquires it, or in a register. Later it is a word of a queue on the stack,
 * beside the address of the byte in the object.
 *
 * Up to 3.12 a thread lets go of such an object when it ends: its state has a weak reference to it. Later such a byte is set in what
 * Python keeps of threads that can be joined.
 */

enum {
	PYTHON_LOCK_BYTES = 24, /* of an object, which tell whether it is the one */
	PYTHON_LOCK_CANDIDATES = 128,
};

/* Addresses of what may be the object, which are to be read. How many. */
size_t python_lock_candidates(const struct snapshot *snap, const struct snap_thread *thread, uint64_t out[PYTHON_LOCK_CANDIDATES]);

/* The semaphore that an object with these first bytes points to. */
uint64_t python_lock_word(const uint8_t bytes[PYTHON_LOCK_BYTES]);

/* The object by what is beside the futex on the thread's stack; 0: it is not there. `mem` is the thread's. */
uint64_t python_lock_beside(const struct snap_thread *thread, struct mem *mem);

struct python_lock {
	enum wait_kind kind; /* WAIT_PYTHON_LOCK or WAIT_PYTHON_RLOCK */
	uint64_t owner;	     /* of an RLock: what pthread_self() is; 0: nobody */
	uint64_t count;	     /* and how often it has it */
};

/* False: it is no lock. */
bool python_lock_read(const struct python_layout *layout, struct mem *mem, uint64_t object, struct python_lock *out);

/* The weak reference to a lock object, by which the thread with this state lets go of it in the end; 0: there is none. */
uint64_t python_end_of_lock(const struct python_layout *layout, struct mem *mem, uint64_t object);
uint64_t python_end_of_thread(const struct python_layout *layout, struct mem *mem, uint64_t tstate);

/* Where python_lock_beside() tells what is no lock object: what pthread_self() is for the thread whose end the byte tells; 0: none. */
uint64_t python_end_beside(struct mem *mem, uint64_t object);

#endif
