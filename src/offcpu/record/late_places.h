/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_RECORD_LATE_PLACES_H
#define STAKEOUT_OFFCPU_RECORD_LATE_PLACES_H

#include "base/vec.h"
#include "offcpu/feed/tables.h"
#include "offcpu/waits.h"

/*
 * A stack that was taken before the maps of its process were known ends at once, at an address in code that is not
 * known. Later stacks of the same process were walked with maps that include it: these give the address its name,
 * unless the process has called exec in between.
 */
struct late_places {
	VEC(uint64_t) ends; /* of programs: the process, and in the low half the number of the next stack of all */
	size_t known;	    /* ends are complete for stacks before this one */
};

void late_places_init(struct late_places *places);
void late_places_deinit(struct late_places *places);

/* From here on the process runs another program, or is another process. `next` is waits_nstacks(). */
void late_places_end_program(struct late_places *places, pid_t tgid, size_t next);

/* Gives addresses of stacks their places. If memory is exhausted they stay as they are. */
void late_places_find(struct late_places *places, struct tables *tables, const struct waits *waits);

#endif
