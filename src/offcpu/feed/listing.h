/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_LISTING_H
#define STAKEOUT_OFFCPU_FEED_LISTING_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/feed/jit_processes.h"
#include "offcpu/feed/mapping_sets.h"
#include "offcpu/feed/objects.h"

enum { LISTING_MAX = OFFCPU_MAX_MAPPINGS };

/* The executable mappings of a process as they are now. */
struct listing {
	struct mappings mappings; /* to be taken over, or for mappings_deinit(), also when reading failed */
	size_t mappings_over;     /* that are left out */
	size_t files_over;        /* that have no number, or no table, because of the objects' limits */
	uint64_t new_bytes;       /* of code in files that are not known, where only those are wanted */
};

struct listing_options {
	struct objects *objects;
	struct jit_processes *jit;
	pthread_mutex_t *lock; /* of both (objects.h); it is taken here */
	bool known_only;
};

struct target;

/* Files that are known are not opened again. -EAGAIN: with `known_only`, one is not. */
int listing_read(struct target *target, const struct listing_options *options, struct err *err, struct listing *out);

#endif
