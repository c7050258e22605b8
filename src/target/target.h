/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_TARGET_H
#define STAKEOUT_TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "proc/process.h"
#include "target/memory.h"
#include "target/modules.h"

/*
 * One process, pinned: the one door to it. Its pidfd and its directory in /proc are held open, so nothing that is learnt
 * here is of a process that got the number later; `generation` tells whether it still executes the same program. A saved
 * snapshot is a target without a live process.
 */
struct target {
	struct process process; /* all descriptors are -1: there is no live process */
	struct memory memory;
	int root_fd;         /* its root directory, or -1 */
	uint64_t generation; /* of the program that it executes, as of the last target_look(); 0: not known */

	/* Its map, and what exists of its code in memory only: capture's, a file's, or without threads (target_read_map). */
	struct snapshot *snap;
	bool owns_snap;
	struct modules *modules; /* the files behind the map, once they are opened */
};

/* Fails as process_open() does, also for a thread of another process: then with -EINVAL. */
int target_open(pid_t pid, struct err *err, struct target **out);

/* A process that is already open, with descriptors of its own. */
int target_open_process(const struct process *process, struct err *err, struct target **out);

/* A snapshot that was read from a file, which must outlive the target. NULL when memory is exhausted. */
struct target *target_open_saved(struct snapshot *snap);

void target_close(struct target *target); /* NULL is legal */

bool target_is_live(const struct target *target);

/* Finds its memory, root and program anew: threads may have ended, and others executed something. */
void target_look(struct target *target);

/*
 * 0: it is the same process, and executes the same program as at the last target_look(), so what was read since is of both.
 * -ESRCH: it has ended. -EAGAIN: it has executed another program.
 */
int target_check(const struct target *target, struct err *err);

/* A new snapshot with its map and vDSO but without threads, which belongs to the target. */
int target_read_map(struct target *target, struct err *err);

/* The snapshot that capture makes, which must outlive the target; what was opened for another one is closed. */
void target_set_snapshot(struct target *target, struct snapshot *snap);

/*
 * Opens the files behind the map, and copies what exists of its code in memory only into the snapshot. Again after
 * another snapshot was set.
 */
int target_open_files(struct target *target, const struct modules_options *options, struct err *err);

void target_forget_memory(struct target *target); /* closes what it is read through: many targets may be kept */
void target_forget_files(struct target *target); /* closes them: the map is to be read again */

/* All of it: the process, its map and its files. `options` may be NULL. */
int target_open_whole(pid_t pid, const struct modules_options *options, struct err *err, struct target **out);

DEFINE_CLEANUP(target, struct target *, target_close)

#endif
