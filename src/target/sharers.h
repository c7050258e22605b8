/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_SHARERS_H
#define STAKEOUT_TARGET_SHARERS_H

#include <stdbool.h>

#include "model/snapshot.h"
#include "proc/process.h"

/*
 * Who shares memory in which threads of a process wait for locks. What is in there are numbers of threads, which mean something only if
 * all who share it are numbered alike. To be called when the snapshot has its threads and their copies: fills its namespaces, strangers and
 * has_doubtful_numbers. Where nobody waits for such a lock nothing is read.
 */
void sharers_find(const struct process *process, struct snapshot *snap);

#endif
