/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_SHARED_H
#define STAKEOUT_WAIT_SHARED_H

#include "model/trace.h"

/* Locks that several processes share. */

/* The mapping in which the process shares this address with others; NULL: it does not. */
const struct map_entry *wait_shared_map(const struct snapshot *snap, uint64_t address);

/*
 * Finds owners in other processes than those whose threads wait, among those that were looked at: both have the same memory mapped, be it
 * at different addresses, and are numbered by the same pid namespace. To be called when waits_find() was for all of them.
 */
void waits_find_shared(struct trace *const *traces, size_t n);

#endif
