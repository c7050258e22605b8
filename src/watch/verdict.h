/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WATCH_VERDICT_H
#define STAKEOUT_WATCH_VERDICT_H

#include "model/watch.h"

/* The rules by which stuck is told apart from slow. */

/* What a thread has done between two looks at it. */
enum watch_step watch_step_between(const struct watch_look *before, const struct watch_look *now);

/* What it has done in all of them, by what was counted. */
enum watch_verdict watch_verdict_of(const struct watched_thread *thread);

#endif
