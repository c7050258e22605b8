/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_MAPS_H
#define STAKEOUT_MODEL_MAPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum map_perm {
	MAP_PERM_READ = 1,
	MAP_PERM_WRITE = 2,
	MAP_PERM_EXEC = 4,
	MAP_PERM_SHARED = 8,
};

/* One line of /proc/PID/maps. Strings belong to the snapshot's arena. */
struct map_entry {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t inode;	 /* 0: not a file */
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t perms;	      /* enum map_perm */
	uint32_t deleted;     /* the path ended in " (deleted)", which is removed from `path` */
	const char *path;     /* as the target sees it; "" for anonymous memory, "[stack]", "[vdso]"… */
	const char *build_id; /* hex; NULL until the file has been looked at, or when it has none */
};

struct maps {
	VEC_FIELDS(struct map_entry); /* by rising address */
};

/* The entry that contains `address`, or NULL. */
const struct map_entry *maps_find(const struct maps *maps, uint64_t address);

#endif
