/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_OBJECTS_H
#define STAKEOUT_OFFCPU_FEED_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/offcpu_probe.h"
#include "target/modules.h"
#include "target/roots.h"

/*
 * Files with code, each once however many processes have it: the table that BPF walks its code with, and a descriptor
 * of the file, to name addresses when the processes are gone. A file that nobody uses any more is dropped, unless an
 * address in it is still to be named: then only its table is.
 *
 * Where BPF finds out itself what a process has mapped, it is told of each file as well (file_pin.h).
 *
 * Taking and giving back needs a lock. It is released while files are read, tables are made and BPF is given them: that
 * takes long, and threads that need only known files do not wait for it. One thread at a time takes new files. Any
 * thread may keep objects and ask for modules, without the lock.
 */
struct objects;

struct objects_limits {
	uint32_t files; /* numbers are below it */
	uint32_t rows;  /* of all tables together */
};

/* Called when a limit is reached: gives something back and returns true; false when nothing is left to give back. */
typedef bool (*room_fn)(void *arg);

/*
 * What makes two files the same: their identity (image.h); for those in memory only, such as the vDSO, their contents.
 * 0: the module has none.
 */
uint64_t objects_key(const struct module *module);

/* `make_room` should give objects back. `probe` and `lock` must outlive it. NULL when memory is exhausted. */
struct objects *objects_create(struct offcpu_probe *probe, pthread_mutex_t *lock, const struct objects_limits *limits,
			       room_fn make_room, void *arg);
void objects_destroy(struct objects *objects);

enum objects_fit {
	OBJECTS_FIT,
	OBJECTS_NO_TABLE, /* no room for its table, or not for all of it: its code is walked by frame pointer */
	OBJECTS_NO_ROOM,  /* it got no number */
};

/*
 * The number of the file of a mapping, whose module is known. Give it back as often as it was taken. OFFCPU_NO_OBJECT
 * when it has none: no room, or no readable file. `vaddr` is the address in the file of the mapping's start. The module
 * may have no image afterwards.
 */
uint32_t objects_take(struct objects *objects, const struct modules *modules, const struct map_entry *entry,
		      struct module *module, uint64_t vaddr, enum objects_fit *fit);

/* A file that need not be mapped by anybody any more. */
struct open_file {
	int fd;            /* taken over */
	uint64_t offset;   /* where its code was mapped from */
	struct root *root; /* of who mapped it, which stays the caller's; may be NULL */
};

/* The same for such a file. */
uint32_t objects_take_open(struct objects *objects, const struct open_file *file, struct module *module, uint64_t vaddr,
			   enum objects_fit *fit);

/* The same by key, for a file that is taken, whose table BPF has, and that was mapped from there before; else false. */
bool objects_take_known(struct objects *objects, uint64_t key, const struct map_entry *entry, uint32_t *number,
			uint64_t *vaddr, enum objects_fit *fit);
void objects_take_again(struct objects *objects, uint32_t number);

/* The same for a mapping that BPF has found. False when the file that had this number, or its table, is gone. */
bool objects_take_found(struct objects *objects, uint32_t number, uint32_t serial);
void objects_give(struct objects *objects, uint32_t number);

/*
 * Gives BPF the tables of files that were taken, and removes those of files that were given back. Done in batches,
 * since each call takes long. Any thread may do it. Returns how many files got no table because this failed, since the last call.
 */
uint32_t objects_flush(struct objects *objects);

uint64_t objects_made(const struct objects *objects); /* rises when a new file has become known */

/* What BPF has of an object that is taken, after a flush. nrows 0: no table. */
struct object_table {
	uint64_t base; /* address in the file that the rows count from */
	uint32_t nrows;
	uint32_t serial; /* each table has another */
};

struct object_table objects_table(const struct objects *objects, uint32_t number);

/* The roots that debug files of its objects are looked for below. */
struct roots *objects_roots(struct objects *objects);

/* From now on files that are taken get no table: nobody will walk by it. */
void objects_end_tables(struct objects *objects);

/* The number of a file that BPF has seen mapped. False: it is not known. When all files are there that ever will be. */
bool objects_find_file(struct objects *objects, const struct offcpu_file *file, uint32_t *number);

/* From now on this object, which is taken, stays. */
void objects_keep(struct objects *objects, uint32_t number);

/* What was learnt of them goes to the cache. When nobody else uses them. */
void objects_keep_names(struct objects *objects);

/* The module of an object that stays; NULL when it does not stay, or cannot be read. */
struct module *objects_module(struct objects *objects, uint32_t number);

#endif
