/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_FILE_PLACE_H
#define STAKEOUT_PROC_FILE_PLACE_H

#include "base/arena.h"
#include "proc/mounts.h"

/* Where a file is. Nothing is asked of the file system itself, which may not answer. */
struct file_place {
	const char *path;	/* as the process sees it; NULL: not known */
	const char *filesystem; /* its type; NULL: likewise */
	const char *device;	/* what was mounted: a device, a server's directory … */
};

/*
 * Of a descriptor of a thread; `mounts` are those of its process. Strings go to the arena. False: there is no such descriptor, or it is none of
 * a file, or it is not for us to see.
 */
bool file_place_read(struct mount_list *mounts, pid_t tid, int fd, struct arena *arena, struct file_place *out);

/*
 * The same of a path from the process's root on: what is mounted nearest to it. Symbolic links are not followed, so it may be on something
 * else. False: nothing that is known is mounted there.
 */
bool file_place_of_path(struct mount_list *mounts, const char *path, struct arena *arena, struct file_place *out);

/* The same of a path that is known to be on that device, as mappings tell it. */
bool file_place_of_device(struct mount_list *mounts, uint32_t dev_major, uint32_t dev_minor, const char *path, struct arena *arena,
			  struct file_place *out);

#endif
