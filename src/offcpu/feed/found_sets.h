/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_FOUND_SETS_H
#define STAKEOUT_OFFCPU_FEED_FOUND_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offcpu/feed/mapping_sets.h"
#include "offcpu/feed/objects.h"

/*
 * The sets of mappings that BPF has made, by which addresses of its stacks are found. BPF gives the room of the oldest to
 * new ones without asking; here each is kept for twice as long, as its last stacks may still be on their way. As long as a
 * set is here its objects stay; where one was gone already when the set came, BPF does not use its table either.
 *
 * Adding and dropping needs the lock of the objects; any thread may look addresses up.
 */
struct found_sets;

/* `probe` and `objects` must outlive it. NULL when memory is exhausted. */
struct found_sets *found_sets_create(struct offcpu_probe *probe, struct objects *objects);
void found_sets_destroy(struct found_sets *sets);

/* A record from the ring, checked. False: it is not one, or memory is exhausted. */
bool found_sets_add(struct found_sets *sets, const void *record, size_t len);

/* To make room. BPF may use it still, and then has to make another. False: there are none. */
bool found_sets_drop_oldest(struct found_sets *sets);

/* As mapping_sets_find(). */
bool found_sets_find(struct found_sets *sets, uint32_t id, uint64_t address, struct mapping *out);

#endif
