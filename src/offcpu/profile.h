/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_PROFILE_H
#define STAKEOUT_OFFCPU_PROFILE_H

#include "model/offcpu.h"

/*
 * When all threads and rows are there: merges rows that a reader cannot tell apart, marks the idle ones, and puts the
 * heaviest first. False when memory is exhausted: rows are then sorted, but may not be added up or marked.
 */
bool offcpu_profile_finish(struct offcpu_profile *profile);

/* Causes of waits that are not over, of which the stacks do not tell: by the looks at their threads, which came later. */
void offcpu_profile_use_looks(struct offcpu_profile *profile);

#endif
