/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RUNTIME_WAITS_H
#define STAKEOUT_OFFCPU_RUNTIME_WAITS_H

#include "model/stack.h"

/* What the library of a language says that a thread waits for. */
enum frame_wait {
	RUNTIME_WAIT_UNKNOWN, /* the native frames have to tell */
	RUNTIME_WAIT_LOCK,
	RUNTIME_WAIT_CONDITION,
	RUNTIME_WAIT_SEMAPHORE, /* a pool's, or it stands for a lock */
	RUNTIME_WAIT_OTHERS,    /* for other threads: to end, to come somewhere, to have a result, to make room */
	RUNTIME_WAIT_SLEEP,
};

/*
 * Runtimes make locks of condition variables and conditions of locks, so native frames mislead: the innermost frames of
 * the language's own library tell. Only the runtime's own locks, which any of its code may wait for, come before.
 * `frames` is how many of the innermost ones belong to the wait. To add a function: a line in the tables of
 * runtime_waits.c.
 */
enum frame_wait offcpu_runtime_wait(const struct stack *user, size_t *frames);

#endif
