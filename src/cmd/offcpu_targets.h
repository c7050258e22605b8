/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_TARGETS_H
#define STAKEOUT_CMD_OFFCPU_TARGETS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "cmd/process_args.h"

/* Those of the processes asked for that can be recorded, and what is to be said of the others. */
struct offcpu_targets {
	struct tid_list pids;
	bool missing; /* there are others */
	struct arena *arena;
	VEC(const char *) notes;
};

/* Lists from pgrep are soon out of date: only when none is left it is an error, or when a name is that of several. */
int offcpu_targets_find(struct offcpu_targets *targets, const struct process_args *wanted, struct err *err);
void offcpu_targets_deinit(struct offcpu_targets *targets);

#endif
