/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_OUTSIDERS_H
#define STAKEOUT_TARGET_OUTSIDERS_H

#include "model/snapshot.h"
#include "proc/process.h"
#include "target/sharers.h"

/*
 * Locks that threads of a process wait for may have the number of a thread that the snapshot does not have: one that has ended; one that was not
 * wanted; one of the parent, which had the lock when the process was forked; after a vfork(), one of a process that has the same memory; or one of a
 * process that shares the memory of the lock. To be called when the snapshot has its threads and what they wait for: fills its outsiders,
 * with those that live. Where all numbers are those of its threads nothing is read.
 */
void outsiders_find(const struct process *process, const struct sharers *sharers, struct snapshot *snap);

#endif
