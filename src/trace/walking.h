/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TRACE_WALKING_H
#define STAKEOUT_TRACE_WALKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "capture/capture.h"
#include "model/trace.h"
#include "runtime/runtime.h"
#include "target/target.h"
#include "trace/ptrace_walk.h"

/* From a snapshot to raw stacks. */
struct walking {
	struct target *target;     /* with its files opened */
	struct capture *capture;   /* NULL for a saved snapshot */
	struct ptrace_walk *walked; /* stacks that are known already, or NULL */
	const struct runtimes *runtimes;
	bool wants_waits; /* what they wait for is to be told */
	uint32_t depth;
	struct budget *budget; /* of all walks */
};

/*
 * Walks all threads of target->snap into trace->threads. As long as there is a live process, memory that a walk needs and
 * the snapshot lacks is asked for, and threads whose registers /proc does not tell are held once to learn them: the
 * snapshot is changed by that, for the last time.
 */
int walking_run(const struct walking *walking, struct trace *trace, struct err *err);

#endif
