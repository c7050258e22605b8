/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_LOOK_H
#define STAKEOUT_CMD_OFFCPU_LOOK_H

#include "base/vec.h"
#include "model/offcpu.h"
#include "offcpu/watch.h"
#include "trace/tracing.h"

/* A look at the processes when a recording has ended: it tells for what threads wait whose waits are not over. */
struct offcpu_look {
	VEC(struct tracing *) tracings;
	struct tracing_names names;
	uint64_t stopped_ns; /* CLOCK_MONOTONIC: when the recording ended */
};

/* Of these processes, and their children if that is wanted. Where it cannot be had the report does without. */
void offcpu_look_take(struct offcpu_look *look, const struct tid_list *pids, bool children);
void offcpu_look_deinit(struct offcpu_look *look);

/* Adds its processes to those that a parser is about, and lets it go on there. False when memory is exhausted. */
bool offcpu_look_prepare(struct offcpu_look *look, struct watch_targets *targets);

/* In the parser: names the stacks, and gives the profile what they tell. It is borrowed. */
int offcpu_look_tell(struct offcpu_look *look, const struct native_names_options *names, struct offcpu_profile *profile, struct err *err);

#endif
