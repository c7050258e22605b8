/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_RECORDER_H
#define STAKEOUT_TARGET_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "model/mem.h"
#include "model/snapshot.h"
#include "target/memory.h"

/*
 * Memory that keeps what is read of it. Whoever follows pointers through it reads the live process, and what was read
 * becomes part of the snapshot: the same code that is run again on the copies, here or on another machine, sees the same
 * bytes. Reads are of whole blocks, since what is near is often wanted next.
 */

enum {
	RECORDER_THREAD_BLOCK = 1024,
	RECORDER_THREAD_COPIES = 1024, /* most blocks of one thread */
	RECORDER_PROCESS_BLOCK = 512,
	RECORDER_PROCESS_BYTES = 16 << 20, /* most of what is no thread's own */
	RECORDER_THREAD_WORK = 1 << 20,    /* most looks at copies for one thread, which may be held meanwhile */
	RECORDER_PROCESS_WORK = 1 << 24,   /* most reads of what is no thread's own: pointers may lead in circles */
};

/* Room for what is read of several threads; nothing is allocated once it is there. */
struct recorder_room {
	struct bulk bytes;
	uint64_t used;
	struct snap_copy *copies;
	size_t len;
	size_t cap;
};

/* What is read of one thread while its memory stands still. Nothing to free. */
struct thread_recorder {
	struct mem mem;
	struct memory *vm;
	struct recorder_room *room;
	size_t first; /* of its copies in the room, */
	uint64_t first_byte; /* and of their bytes */
	uint32_t work; /* looks at copies that may still be taken */
	pid_t tid;
	const struct mem_copy *stack;       /* what is copied already, */
	const struct mem_copy *interrupted; /* and this; may be NULL */
};

void thread_recorder_init(struct thread_recorder *recorder, struct memory *vm, struct recorder_room *room, pid_t tid,
			  const struct mem_copy *stack, const struct mem_copy *interrupted);

/* What is no thread's own: in a live process read and kept in snap->copies, else only what is kept there. */
struct process_recorder {
	struct mem mem;
	struct memory *vm; /* NULL: there is no live process */
	struct snapshot *snap;
	struct u64map blocks; /* by number to struct mem_copy */
	uint64_t left;        /* bytes that may still be read */
	uint32_t work;        /* and how often */
	struct arena *own;    /* of what is read in passing */
	bool passing;         /* only for this recorder's own reads: it becomes no part of the snapshot. Set after init */
};

/* False when memory is exhausted. */
bool process_recorder_init(struct process_recorder *recorder, struct memory *vm, struct snapshot *snap);
/* It has read as much as it may: what comes later cannot be read. */
bool process_recorder_is_full(const struct process_recorder *recorder);
void process_recorder_deinit(struct process_recorder *recorder);

#endif
