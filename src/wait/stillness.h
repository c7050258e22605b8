/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_STILLNESS_H
#define STAKEOUT_WAIT_STILLNESS_H

#include "wait/threads.h"

/* Who did not run while something was read: only of such threads is it known what they had, and waited for, at one instant. */

/*
 * What the thread waits for was read with its stack, and whoever was the owner then was so at one instant with its wait. Both are of
 * one process, or of some that were captured together.
 */
bool stillness_of_capture(const struct snap_thread *thread, const struct snap_thread *owner);

/* The same of what was read after the capture, before the last look at the threads. */
bool stillness_of_last_look(const struct wait_threads *threads, const struct snap_thread *thread, const struct snap_thread *owner);

/* It had not run when it was looked at for the last time: what was read since the capture is of its wait. */
bool stillness_lasts(const struct wait_threads *threads, const struct snap_thread *thread);

#endif
