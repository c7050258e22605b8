/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_LACKING_H
#define STAKEOUT_REPORT_LACKING_H

#include <stdbool.h>

#include "base/vec.h"
#include "model/trace.h"

/* The modules in a trace's stacks that lack symbols or debug info, each once, in the order in which they are met. */
struct lacking {
	VEC_FIELDS(const struct module_info *);
};

/* False when memory is exhausted. */
bool lacking_find(struct lacking *lacking, const struct trace *trace);

static inline void lacking_deinit(struct lacking *lacking)
{
	vec_deinit(lacking);
}

#endif
