/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_LISTING_H
#define STAKEOUT_OFFCPU_FEED_LISTING_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/feed/jit_processes.h"
#include "offcpu/feed/mapping_sets.h"
#include "offcpu/feed/new_files.h"
#include "offcpu/feed/objects.h"

enum { LISTING_MAX = OFFCPU_MAX_MAPPINGS };

/* The executable mappings of a process as they are now. */
struct listing {
	struct mappings mappings; /* to be taken over, or for mappings_deinit(), also when reading failed */
	size_t mappings_over;     /* mappings that were left out */
	size_t files_over;        /* files without a number or a table because of the objects' limits */
	uint64_t new_bytes;       /* of code in new files, where only known ones are wanted */
};

struct listing_options {
	struct objects *objects;
	struct jit_processes *jit;
	pthread_mutex_t *lock; /* guards both (objects.h); it is taken in here */
	bool known_only;
	struct new_files *new_files; /* then the others are put here; may be NULL */
};

struct target;

/* Known files are not opened again. -EAGAIN: with `known_only`, one of the files is new. */
int listing_read(struct target *target, const struct listing_options *options, struct err *err, struct listing *out);

#endif
