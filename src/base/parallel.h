/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_PARALLEL_H
#define STAKEOUT_BASE_PARALLEL_H

#include <stddef.h>

/*
 * Calls work(ctx, i) for each i below `count`, on all cores that we may use, and returns when all are done. Order and
 * threads are unspecified. When no thread can be created the caller does all the work.
 */
void parallel_for(size_t count, void (*work)(void *ctx, size_t i), void *ctx);

#endif
