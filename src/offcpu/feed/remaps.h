/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_REMAPS_H
#define STAKEOUT_OFFCPU_FEED_REMAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/*
 * When to read the map of a process that changes it. A loader maps ten libraries in a row, and a JIT compiler may never
 * stop: a process is read after a moment of quiet, and the more often it was read lately, the longer it has to wait.
 * All times are of the same clock, in ns.
 */
struct remaps {
	VEC(struct remap) recent;
};

struct remap {
	pid_t tgid;
	bool pending;
	uint64_t first_ns;      /* the first mapping since it was last read, if pending */
	uint64_t last_ns;       /* the last mapping, pending or not */
	uint64_t not_before_ns; /* when it may be read again */
	uint64_t gap_ns;
};

void remaps_deinit(struct remaps *remaps);

/* The process has mapped something. When there is no room it is left out: a stack that lacks a mapping asks for it. */
void remaps_note(struct remaps *remaps, pid_t tgid, uint64_t now_ns);

/* A process to read now; 0: none. Call it until it returns 0. */
pid_t remaps_take(struct remaps *remaps, uint64_t now_ns);

/* Whether remaps_take() should be called again soon even if nothing else is mapped. */
bool remaps_pending(const struct remaps *remaps);

#endif
