/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_LATE_PLACES_H
#define STAKEOUT_OFFCPU_RECORD_LATE_PLACES_H

#include "base/vec.h"
#include "offcpu/feed/tables.h"
#include "offcpu/waits.h"

/*
 * A stack that was taken before the maps of its process were known ends at once, at an address in code that is not known.
 * Later stacks of the same process were walked with maps that have it: by these the address gets its name, unless the
 * process has executed something else in between.
 */
struct late_places {
	VEC(uint64_t) ends; /* of programs: the process, and in the low half the number of the next stack, of any */
	size_t known;	    /* stacks before this one: of those that come after it not all ends are there */
};

void late_places_init(struct late_places *places);
void late_places_deinit(struct late_places *places);

/* From here on the process has another program, or is another one. `next` is waits_nstacks(). */
void late_places_end_program(struct late_places *places, pid_t tgid, size_t next);

/* Gives addresses of stacks their places. Without memory for that they stay as they are. */
void late_places_find(struct late_places *places, struct tables *tables, const struct waits *waits);

#endif
