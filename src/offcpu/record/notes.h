/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_NOTES_H
#define STAKEOUT_OFFCPU_RECORD_NOTES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"
#include "model/offcpu.h"

/* What a recording lacks, and why, as its threads find out. */
struct record_notes {
	pthread_mutex_t lock; /* guards all of it */
	struct arena *arena;
	VEC(const char *) texts;
	uint64_t reads_failed; /* of ring, sums or open waits, or hidden processes: nobody knows what is missing */
};

bool record_notes_init(struct record_notes *notes); /* false: memory is exhausted, but it can be deinited */
void record_notes_deinit(struct record_notes *notes);

void record_notes_add(struct record_notes *notes, const char *what, const char *why);
void record_notes_add_failed_read(struct record_notes *notes, const char *what, const char *why); /* waits may be missing */

/* Into the profile, which they outlive. False when memory is exhausted. */
bool record_notes_give(const struct record_notes *notes, struct offcpu_profile *out);

/* Each reason once, and only a few: many processes may give much the same. */
struct few_notes {
	struct record_notes *notes;
	size_t told, left_out;
};

void few_notes_add(void *few, const char *text);
void few_notes_end(const struct few_notes *few, const char *what); /* what the others were about */

#endif
