/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_FILE_PLACE_H
#define STAKEOUT_PROC_FILE_PLACE_H

#include "base/arena.h"
#include "proc/process.h"

/* Where the file of a descriptor is. Nothing is asked of the file system itself, which may not answer. */
struct file_place {
	const char *path;	/* as the process sees it; NULL: not known */
	const char *filesystem; /* its type; NULL: likewise */
	const char *device;	/* what was mounted: a device, a server's directory … */
};

/* Strings go to the arena. False: there is no such descriptor, or it is none of a file, or it is not for us to see. */
bool file_place_read(const struct process *process, int fd, struct arena *arena, struct file_place *out);

#endif
