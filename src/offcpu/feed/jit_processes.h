/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_JIT_PROCESSES_H
#define STAKEOUT_OFFCPU_FEED_JIT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "offcpu/watch.h"
#include "symbol/calls.h"

/*
 * Processes with code that is in no file, such as JIT compilers make, and the names of that code. They come from the
 * objects that compilers announce to debuggers (target/jit_images.h), read when the first address of the process is
 * named, if it still lives; and from the files that compilers write for perf, read at that time or when the process
 * ends.
 *
 * Any thread may ask, add and end, but no two may add the same process.
 */
struct jit_processes;

struct jit_processes *jit_processes_create(void); /* NULL when memory is exhausted */
void jit_processes_destroy(struct jit_processes *processes);

/*
 * The number of a process, from 1 to JIT_PROCESSES_MAX, until it executes something (`generation` is another then) or
 * ends; no other ever has it. 0 when there are too many, or memory is exhausted.
 */
enum {
	JIT_PROCESSES_MAX = 50000,
	JIT_PROCESSES_HELD = 256, /* at the same time: each takes a few descriptors, and memory for its map */
	JIT_PROCESSES_ANNOUNCED = 128 << 20, /* bytes of all objects; those with named code take twice that */
};

uint32_t jit_processes_add(struct jit_processes *processes, pid_t tgid, uint64_t generation);

/* Processes that have no number because there are too many, or whose objects are too large. */
uint64_t jit_processes_over_limit(struct jit_processes *processes);

/*
 * The process has ended. If none of its addresses is to be named, nothing of it is kept: 0. Otherwise its number: the
 * files with its names must be read soon, since later nobody knows whose they were; but that may take long.
 */
uint32_t jit_processes_end(struct jit_processes *processes, pid_t tgid);
void jit_processes_read_names(struct jit_processes *processes, uint32_t number);

/* Looks at those that are kept, as far as they live, and appends them to the list: later nobody may have the right to. */
bool jit_processes_look(struct jit_processes *processes, struct watch_targets *out);

/* An address in its code will have to be named. */
void jit_processes_keep(struct jit_processes *processes, uint32_t number);

/* What is known of an address of a process that is kept. False when nothing is, or when memory is exhausted. */
bool jit_processes_find(struct jit_processes *processes, uint32_t number, uint64_t address, struct calls *out);

/* Why code has no names, for the processes whose names were asked for. To be called when nobody asks any more. */
typedef void (*jit_processes_note_fn)(void *arg, const char *note);
void jit_processes_notes(struct jit_processes *processes, jit_processes_note_fn fn, void *arg);

#endif
