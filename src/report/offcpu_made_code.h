/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_MADE_CODE_H
#define STAKEOUT_REPORT_OFFCPU_MADE_CODE_H

#include "model/offcpu.h"

/* Who made the code, in memory without a file, that has no names, as far as the name of the process tells. */
enum offcpu_maker {
	OFFCPU_MAKER_NODE,
	OFFCPU_MAKER_JAVA,
	OFFCPU_MAKER_PYTHON,
	OFFCPU_MAKER_OTHER,
	OFFCPU_MAKERS,
};

/*
 * Sets those that have such frames in their user stacks; `skip_idle`: not in rows that are idle. A stack without any
 * frame in a file tells nothing: the maps of the process are not known then. False when memory is exhausted.
 */
bool offcpu_find_makers(const struct offcpu_profile *profile, bool skip_idle, bool makers[OFFCPU_MAKERS]);

/* What would give it names: a sentence. */
const char *offcpu_maker_help(enum offcpu_maker maker);

#endif
