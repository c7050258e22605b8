/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_FILE_LOCKS_H
#define STAKEOUT_PROC_FILE_LOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "model/descriptor.h"
#include "proc/holders.h"
#include "proc/mounts.h"

/* A line of /proc/locks: a lock on a file that somebody has, or waits for. */
struct file_lock {
	uint64_t id;   /* those who wait for a lock have its number */
	bool waits;    /* it is not had yet */
	struct wanted_lock lock;
	pid_t pid;     /* of the process that asked for it; -1: of none, as it belongs to an open file */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
};

struct file_locks {
	VEC_FIELDS(struct file_lock); /* as the kernel lists them: who waits comes behind whom it waits for */
	bool cut;		      /* there are more */
};

/* False: it is none, or one of another kind, such as a lease. */
bool file_lock_parse(const char *line, struct file_lock *out);

/* All of the machine, as far as /proc shows them. 0 or -errno. */
int file_locks_read(struct file_locks *out);

/* The file that a descriptor leads to, as these lines have it. */
struct locked_file {
	uint32_t dev_major, dev_minor;
	uint64_t inode; /* 0: it is not known which */
};

/*
 * By what /proc/PID/task/TID/fdinfo/FD says, and the mounts of the process. False: the kernel does not tell, or the file is on a mount of another
 * namespace.
 */
bool file_locks_find_file(struct mount_list *mounts, pid_t tid, int fd, struct locked_file *out);

/* Who has a lock: each process that has the open file which it belongs to can let go of it. */
struct held_lock {
	const struct file_lock *lock;
	struct holders holders;
};

/* Looks through the descriptors of all processes, once; *refused: not all could be seen. 0 or -ENOMEM. */
int file_locks_find_holders(struct held_lock *locks, size_t n, bool *refused);

#endif
