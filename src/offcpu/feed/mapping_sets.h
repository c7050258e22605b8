/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_MAPPING_SETS_H
#define STAKEOUT_OFFCPU_FEED_MAPPING_SETS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "kernel/offcpu_probe.h"
#include "offcpu/feed/objects.h"

/*
 * The executable mappings of processes, as numbered sets that never change: when a process maps something else it gets
 * another set. Processes with the same mappings, such as the workers of a server, share one.
 *
 * A set that no process has any more stays until its room is needed: stacks that were walked with it may still be on
 * their way, and children that have not called exec keep using it. The oldest one goes first.
 *
 * One thread takes and gives back; any may look addresses up.
 */
struct mapping_sets;

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t bias;   /* address - bias = address in the file */
	uint32_t object; /* taken from the objects; OFFCPU_NO_OBJECT: the code is in no readable file */
	uint32_t maker;  /* the process that made such code (jit_processes.h); 0: none, or there were too many */
};

static_assert(sizeof(struct mapping) == 32, "mappings are compared as bytes");

struct mappings {
	VEC_FIELDS(struct mapping); /* by rising address */
};

/* Gives the objects back as well. */
void mappings_deinit(struct mappings *mappings, struct objects *objects);

/*
 * Room for `max` mappings in all sets together; when there are more, `make_room` is called to drop sets. Probe and
 * objects must outlive it. NULL when memory is exhausted.
 */
struct mapping_sets *mapping_sets_create(struct offcpu_probe *probe, struct objects *objects, uint32_t max,
					 room_fn make_room, void *arg);
void mapping_sets_destroy(struct mapping_sets *sets);

/*
 * The number of the set with these mappings, which BPF then has; 0 when there is no room. Give it back as often as it
 * was taken. The mappings are taken over in any case. *created: there was no such set.
 */
uint32_t mapping_sets_take(struct mapping_sets *sets, struct mappings *mappings, bool *created);
void mapping_sets_give(struct mapping_sets *sets, uint32_t id);

/* Drops the set that has been unused for longest. False when all are in use. */
bool mapping_sets_drop_oldest(struct mapping_sets *sets);

/* Where a set that is taken lies in BPF's array. */
struct offcpu_maps mapping_sets_maps(const struct mapping_sets *sets, uint32_t id);

/* The mapping at an address; its object is kept from then on, to name the address. False when it is not known. */
bool mapping_sets_find(struct mapping_sets *sets, uint32_t id, uint64_t address, struct mapping *out);

#endif
