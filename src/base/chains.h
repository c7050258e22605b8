/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_CHAINS_H
#define STAKEOUT_BASE_CHAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

/*
 * Finds entries of the caller's array by a hash; the caller picks the right one among those with the same hash. Entries
 * are given as their index in the array plus one, so that 0 means none:
 *
 * 	for (size_t i = chains_first(&chains, hash); i; i = chains_next(&chains, i))
 * 		if (is_same(&array[i - 1], what))
 */
struct chains {
	struct u64map first; /* by hash */
	VEC(size_t) next;    /* of each entry */
};

static inline void chains_deinit(struct chains *chains)
{
	u64map_deinit(&chains->first);
	vec_deinit(&chains->next);
}

static inline size_t chains_first(const struct chains *chains, uint64_t hash)
{
	const uint64_t *first = u64map_find(&chains->first, hash);

	return first ? *first : 0;
}

static inline size_t chains_next(const struct chains *chains, size_t entry)
{
	return chains->next.data[entry - 1];
}

/* The next entry of the array has this hash. False when memory is exhausted. */
static inline bool chains_add(struct chains *chains, uint64_t hash)
{
	bool created;
	uint64_t *first = u64map_put(&chains->first, hash, &created);

	if (!first || !vec_push(&chains->next, *first))
		return false;
	*first = chains->next.len;
	return true;
}

#endif
