/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_TARGETS_H
#define STAKEOUT_CMD_OFFCPU_TARGETS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "cmd/offcpu_options.h"

/* Those of the processes asked for that can be recorded, and what is to be said of the others. */
struct offcpu_targets {
	struct offcpu_pids pids;
	bool missing; /* there are others */
	struct arena *arena;
	VEC(const char *) notes;
};

/* Lists from pgrep are soon out of date: only when none is left it is an error. */
int offcpu_targets_find(struct offcpu_targets *targets, const struct offcpu_pids *wanted, struct err *err);
void offcpu_targets_deinit(struct offcpu_targets *targets);

#endif
