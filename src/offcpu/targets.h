/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_TARGETS_H
#define STAKEOUT_OFFCPU_TARGETS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/notes.h"
#include "proc/process.h"

/* Those of the processes asked for that can be recorded, and what is to be said of the others. */
struct offcpu_targets {
	struct tid_list pids;
	bool missing; /* there are others */
	struct arena *arena;
	VEC(const char *) notes;
};

/*
 * Those among these; `missing` says what else was asked for, and could not be found. Lists from pgrep are soon out of date:
 * only when none is left, of those that were asked for, it is an error.
 */
int offcpu_targets_take(struct offcpu_targets *targets, const struct process_ids *ids, const struct notes *missing,
			struct err *err);
void offcpu_targets_deinit(struct offcpu_targets *targets);

#endif
