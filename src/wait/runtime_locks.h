/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_RUNTIME_LOCKS_H
#define STAKEOUT_WAIT_RUNTIME_LOCKS_H

#include "model/trace.h"
#include "wait/threads.h"

/*
 * From what a language runtime tells of a thread in a futex, and its frames, to what it waits for. False: it is nothing of a runtime's;
 * the futex is then what there is to tell.
 */
bool runtime_lock_find(const struct wait_threads *threads, const struct trace_thread *thread, struct wait *out);

#endif
