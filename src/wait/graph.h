/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_GRAPH_H
#define STAKEOUT_WAIT_GRAPH_H

#include "model/deadlock.h"

/*
 * Finds the deadlocks among the threads of some processes. Each wait in them was true at the instant of the snapshot, and none ends by
 * itself. False when memory is exhausted.
 */
bool deadlocks_find(const struct trace *const *traces, size_t n, struct deadlocks *out);

#endif
