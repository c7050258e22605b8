/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_MOUNTS_H
#define STAKEOUT_PROC_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"
#include "proc/process.h"

/* One line of /proc/PID/mountinfo. The strings are valid during the visit. */
struct mount_entry {
	uint64_t id; /* as statx() reports for a file: STATX_MNT_ID */
	uint32_t dev_major;
	uint32_t dev_minor;
	const char *where; /* the mount point, as the process sees it */
	const char *type;
	const char *source; /* a device, a server's directory …, "" when there is none */
	const char *options; /* of the file system, "" when there are none */
};

/* Visits the mounts that a process sees; `dir_fd` is its directory in /proc. 0 or -errno. */
int mounts_visit(int dir_fd, void (*visit)(void *arg, const struct mount_entry *mount), void *arg);

/* The same, kept: they are read when the first one is looked for. {.process = …} has not read them yet. */
struct mount_list {
	const struct process *process;
	struct arena *strings; /* NULL: they were not read */
	VEC_FIELDS(struct mount_entry);
};

void mount_list_deinit(struct mount_list *mounts);

/* By number; by device, the last one of several; the one nearest to a path, which hides others at the same place. NULL: none is known. */
const struct mount_entry *mount_list_find(struct mount_list *mounts, uint64_t id);
const struct mount_entry *mount_list_find_device(struct mount_list *mounts, uint32_t dev_major, uint32_t dev_minor);
const struct mount_entry *mount_list_find_path(struct mount_list *mounts, const char *path);

/* True for local file systems: reading from them takes as long as a disk does, not for ever. */
bool mount_type_is_local(const char *type);

#endif
