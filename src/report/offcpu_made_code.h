/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_MADE_CODE_H
#define STAKEOUT_REPORT_OFFCPU_MADE_CODE_H

#include "model/offcpu.h"

/* Which runtime made the nameless code in no file, judging by the name of the process. */
enum offcpu_maker {
	OFFCPU_MAKER_NODE,
	OFFCPU_MAKER_JAVA,
	OFFCPU_MAKER_PYTHON,
	OFFCPU_MAKER_OTHER,
	OFFCPU_MAKERS,
};

/*
 * Sets the makers that have such frames in their user stacks; `skip_idle`: leaves idle rows out. A stack without any
 * frame in a file says nothing: the maps of its process are not known. False when memory is exhausted.
 */
bool offcpu_find_makers(const struct offcpu_profile *profile, bool skip_idle, bool makers[OFFCPU_MAKERS]);

/* A sentence on what would give it names. */
const char *offcpu_maker_help(enum offcpu_maker maker);

#endif
