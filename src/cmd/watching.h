/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_WATCHING_H
#define STAKEOUT_CMD_WATCHING_H

#include <stdbool.h>

#include "cmd/capture_args.h"
#include "cmd/view.h"
#include "model/watch.h"

/*
 * The rounds of a watch. What is compared are raw facts, here, where they were captured. Names are found by a process without rights,
 * a new one for each round in which something has moved; it writes what there is to tell, and leaves the name of the function that each
 * thread was in, which is all that has to be remembered of a round. See docs/internals.md.
 */
struct watching {
	const struct capture_args *args;
	struct view *view;
	struct watch_log watch;
	struct process_ids ids;         /* those that have not ended */
	VEC(struct tracing *) tracings; /* what was captured of each last; NULL: nothing yet */
	VEC(uint64_t) told;             /* deadlocks and notes, by their hashes */
	struct watch_board *board;      /* shared with the parser */
	size_t board_size;
	bool places_taken; /* from the board, for this round */
	bool doubt;        /* threads seemed to wait for each other, or not all could be told: the next round is looked at in any case */
};

/* False when memory is exhausted. The arguments must outlive it. */
bool watching_init(struct watching *w, const struct capture_args *args, struct view *view);
void watching_deinit(struct watching *w);

/* Which processes; -errno when there are none. How many of those that were asked for are missing, which is told. */
int watching_find(struct watching *w, unsigned *missing, struct err *err);

/* Looks once at all of them, and tells what has changed. A process that cannot be looked at is told of; -ENODATA: that holds for all, at first. */
int watching_look(struct watching *w, struct err *err);

/* What came of it all. */
int watching_sum_up(struct watching *w, struct err *err);

#endif
