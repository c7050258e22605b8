/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_PARALLEL_H
#define STAKEOUT_BASE_PARALLEL_H

#include <stddef.h>

/*
 * Calls work(ctx, i) for each i below `count`, on all cores that we may use, and returns when all are done. In which
 * order and on which thread is not said. Where no thread can be made the caller does the work alone.
 */
void parallel_for(size_t count, void (*work)(void *ctx, size_t i), void *ctx);

#endif
