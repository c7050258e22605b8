/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_MOUNTS_H
#define STAKEOUT_PROC_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

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

/* True for local file systems: reading from them takes as long as a disk does, not for ever. */
bool mount_type_is_local(const char *type);

#endif
