/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_SHARERS_H
#define STAKEOUT_TARGET_SHARERS_H

#include <stdbool.h>

#include "model/snapshot.h"
#include "proc/process.h"

/* A file, or what is mapped like one. */
struct shared_object {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
};

enum { MAX_SHARED_OBJECTS = 16 };

/* Who shares memory in which threads of a process wait for locks. */
struct sharers {
	struct shared_object objects[MAX_SHARED_OBJECTS];
	size_t n;
	bool too_many; /* there are more, and all numbers of threads in them are doubtful */
};

/*
 * What is in such memory are numbers of threads, which mean something only if all who share it are numbered alike. To be called when the snapshot
 * has its threads and their copies: fills its namespaces and has_doubtful_numbers. Where nobody waits for such a lock nothing is read.
 */
void sharers_find(const struct process *process, struct snapshot *snap, struct sharers *out);

/* Whether this process shares it, too; false also where that cannot be told. */
bool sharers_have(const struct sharers *sharers, pid_t pid);

#endif
