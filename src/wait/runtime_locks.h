/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_RUNTIME_LOCKS_H
#define STAKEOUT_WAIT_RUNTIME_LOCKS_H

#include "model/trace.h"
#include "wait/threads.h"

/* From what a language runtime tells of a thread in a futex, and its frames, to what it waits for. False: the runtime tells nothing. */
bool runtime_lock_find(const struct wait_threads *threads, const struct trace_thread *thread, struct wait *out);

/*
 * The same by its frames alone, which may be those of a program's own code that has the name of a library's. False: they are of no function that
 * waits; the futex is then what there is to tell.
 */
bool runtime_lock_by_frames(const struct trace_thread *thread, struct wait *out);

#endif
