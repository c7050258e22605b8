/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_LACKING_H
#define STAKEOUT_REPORT_LACKING_H

#include <stdbool.h>

#include "base/map.h"
#include "base/vec.h"
#include "model/offcpu.h"
#include "model/trace.h"

/* The modules in stacks that lack symbols or debug info, each once, in the order in which they are found. */
struct lacking {
	VEC_FIELDS(const struct module_info *);
	struct u64map seen; /* by address */
};

/* Looks through one stack, which may be NULL. False when memory is exhausted. */
bool lacking_add(struct lacking *lacking, const struct stack *stack);

/* Looks through all user stacks of the trace. False when memory is exhausted. */
bool lacking_find(struct lacking *lacking, const struct trace *trace);

/* The same for the profile, including stacks of wakers; `skip_idle`: leaves idle rows out. */
bool lacking_find_offcpu(struct lacking *lacking, const struct offcpu_profile *profile, bool skip_idle);

static inline void lacking_deinit(struct lacking *lacking)
{
	vec_deinit(lacking);
	u64map_deinit(&lacking->seen);
}

#endif
