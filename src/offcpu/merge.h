/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_MERGE_H
#define STAKEOUT_OFFCPU_MERGE_H

#include "model/offcpu.h"

/*
 * Makes one row of all that have the same process, thread, state, stacks, errors and waker. Stacks are the same when
 * they have the same frames, wherever those are kept: kernel stacks that differed only in what was cut off are the
 * same. Stacks of interrupts that woke threads are the same when they have the same functions: the exact place in them
 * means nothing. Of several names the last counts. False when memory is exhausted.
 */
bool offcpu_merge_rows(struct offcpu_profile *profile);

/*
 * Makes rows of threads rows of programs, with the name of a main thread: processes are of one program if they run the
 * same file, and the same script where that is an interpreter. Stacks are the same there when they have the same frames
 * wherever the processes have the files that these are in. They are idle when nearly all of the time
 * with their stacks, whoever the waker, is that of threads which are idle there. False when memory is exhausted.
 */
bool offcpu_merge_threads(struct offcpu_profile *profile);

#endif
