/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_RELEASES_H
#define STAKEOUT_RUNTIME_PYTHON_RELEASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/map.h"
#include "model/mem.h"
#include "runtime/python/chain.h"
#include "runtime/python/layout.h"

/* Which functions may let go of a lock that the thread has, by their names and those in their code. */

struct python_releases {
	const struct python_layout *layout;
	struct mem *mem;
	struct arena *arena;
	struct budget *budget;	 /* a unit for each name, and for so many bytes as are kept of it */
	struct u64map functions; /* by code object */
};

void python_releases_deinit(struct python_releases *releases);

/* How far the frames of a thread were looked at, from the innermost on. */
struct python_release_walk {
	size_t asked;	     /* so many may not have let go of anything */
	const char *library; /* where the Condition is from that is waited for: a path, */
	size_t library_len;  /* of which this is the folder */
	bool waits;	     /* for it; who has called that, and so has its lock, is not known yet */
};

/*
 * Whether the thread has let go of nothing in the functions that it is in, up to that frame: none speaks of it. Functions of the library do so
 * of locks of their own objects, which nobody has who calls them, and what Condition.wait() lets go of is had by the one who calls that.
 */
bool python_releases_nothing(struct python_releases *releases, const struct python_chain *chain, size_t frame, struct python_release_walk *walk);

/* Condition.wait(), which waits for a lock that is nobody else's. */
bool python_releases_is_wait(struct python_releases *releases, uint64_t code);

#endif
