/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_THREADS_H
#define STAKEOUT_RUNTIME_HOTSPOT_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/hotspot/layout.h"
#include "runtime/pages.h"

enum { JAVA_MAX_LOCKED = 8 };

/* What java.lang.Thread, and the virtual machine, know of a thread. */
struct java_thread {
	uint64_t address; /* of the virtual machine's own structure, JavaThread */
	uint64_t low; /* its stack, which tells whose it is: numbers of threads are other ones in a container */
	uint64_t high;
	uint64_t owner_id; /* that monitors have as its number; 0: they have none */
	uint64_t locked[JAVA_MAX_LOCKED]; /* objects that it has locked without a monitor */
	unsigned nlocked;
	pid_t own; /* its number for itself; 0: not known */
	pid_t tid; /* of the snapshot's thread that uses its stack; 0: there is none, or see `has_tids` */
	const char *name;  /* NULL: not known */
	const char *state; /* as Thread.State has it: "WAITING"; NULL: not known */
	bool has_daemon; /* it is known: */
	bool is_daemon;
};

/* Where java.lang.Thread's objects have what tells of waits. */
struct java_thread_shape {
	uint32_t header; /* size of an object's; 0: nothing is known */
	uint32_t eetop;	 /* offsets of fields; 0: there is no such field */
	uint32_t blocker;
	uint32_t holder; /* of what has the status; 0: the object itself has */
	uint32_t status;
	enum { UNKNOWN_REFERENCES, NARROW_REFERENCES, WIDE_REFERENCES } references;
};

/*
 * The threads of a virtual machine. Their objects may be moved while they are read: what does not fit together is left
 * out, and a thread then has no more than the kernel's name.
 */
struct java_threads {
	const struct layout *layout;
	struct pages *pages;
	struct arena *arena;
	VEC(struct java_thread) list; /* by stack */
	struct u64map by_address;     /* positions in it, by JavaThread, */
	struct u64map by_owner_id;    /* number, */
	struct u64map by_locked;      /* and object that it has locked */
	bool has_tids;		      /* java_waits_number() was called for this list */
	struct java_thread_shape shape;
};

void java_threads_init(struct java_threads *threads, const struct layout *layout, struct pages *pages, struct arena *arena);
void java_threads_deinit(struct java_threads *threads);

/* Reads all of them, as far as what tells of them is known. False when memory is exhausted. */
bool java_threads_read(struct java_threads *threads);

/* So that the threads of a list are found: a list that was read is ready. False when memory is exhausted. */
bool java_threads_index(struct java_threads *threads);

/* Whether there are threads, and the object of none could be read. */
bool java_threads_lack_objects(const struct java_threads *threads);

/* The one whose stack has this address. NULL: it is none of them. */
const struct java_thread *java_threads_find(const struct java_threads *threads, uint64_t sp);

/* The one with this JavaThread. NULL: there is none. */
const struct java_thread *java_threads_at(const struct java_threads *threads, uint64_t address);

/* The one that monitors have this number of, or that has locked this object without a monitor. NULL: there is none. */
const struct java_thread *java_threads_with_owner_id(const struct java_threads *threads, uint64_t id);
const struct java_thread *java_threads_that_locked(const struct java_threads *threads, uint64_t object);

/* The name of a state in java.lang.Thread's own bits. */
const char *java_thread_state(uint32_t status);

#endif
