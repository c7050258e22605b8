/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_OBJECTS_H
#define STAKEOUT_OFFCPU_FEED_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/modules.h"
#include "kernel/offcpu_probe.h"

/*
 * Files with code, each once however many processes have it: the table that BPF walks its code with, and the file
 * itself, a descriptor each, to name addresses when the processes are gone. A file that nobody uses goes, unless an
 * address in it is still to be named: then only its table does.
 *
 * Who takes and gives back holds a lock, which is let go of while files are read, tables are made and BPF is told: that
 * takes long, and who needs only files that are known already need not wait for it. One thread at a time takes files that
 * are new. Any may keep objects and ask for modules, without the lock.
 */
struct objects;

struct objects_limits {
	uint32_t files; /* numbers are below it */
	uint32_t rows;  /* of all tables together */
};

/* Called when a limit is in the way: gives something back and returns true, or false when nothing is left to give. */
typedef bool (*room_fn)(void *arg);

/* What makes two files the same: their identity (image.h); for those that are in memory only, as the vDSO, what is in
 * them. 0: it has none. */
uint64_t objects_key(const struct module *module);

/* `make_room` is to give objects back. `probe` and `lock` must outlive it. NULL when memory is exhausted. */
struct objects *objects_create(struct offcpu_probe *probe, pthread_mutex_t *lock, const struct objects_limits *limits,
			       room_fn make_room, void *arg);
void objects_destroy(struct objects *objects);

enum objects_fit {
	OBJECTS_FIT,
	OBJECTS_NO_TABLE, /* there is no room for its table, or for all of it: its code is walked by frame pointer */
	OBJECTS_NO_ROOM,  /* it has no number */
};

/*
 * The number of the file of a mapping, whose module is known, to be given back as often as it was taken.
 * OFFCPU_NO_OBJECT when it has none: no room, or no file that could be read. `vaddr` is the address in the file of the
 * mapping's start. The module may have no image afterwards.
 */
uint32_t objects_take(struct objects *objects, const struct modules *modules, const struct map_entry *entry,
		      struct module *module, uint64_t vaddr, enum objects_fit *fit);

/* Likewise, by its key, of a file that is taken, whose table BPF has, and that was mapped from there before; else false.
 */
bool objects_take_known(struct objects *objects, uint64_t key, const struct map_entry *entry, uint32_t *number,
			uint64_t *vaddr, enum objects_fit *fit);
void objects_take_again(struct objects *objects, uint32_t number);
void objects_give(struct objects *objects, uint32_t number);

/*
 * BPF gets the tables of what was taken, and loses those of what was given back: not before, since each time takes
 * long. Returns how many files have no table because that failed since the last call.
 */
uint32_t objects_flush(struct objects *objects);

uint64_t objects_made(const struct objects *objects); /* rises when a file that was new is known */

/* What BPF has of an object that is taken, after that. nrows is 0: no table. */
struct object_table {
	uint64_t base; /* address in the file that the rows count from */
	uint32_t nrows;
};

struct object_table objects_table(const struct objects *objects, uint32_t number);

/* From now on an object that is taken stays. */
void objects_keep(struct objects *objects, uint32_t number);

/* Of an object that stays; NULL when it does not, or cannot be read. */
struct module *objects_module(struct objects *objects, uint32_t number);

#endif
