/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_SELECTION_H
#define STAKEOUT_CMD_SELECTION_H

#include <regex.h>
#include <stdbool.h>

#include "base/err.h"
#include "model/trace.h"

/* Which threads and tasks are shown: those that are selected by each of the options that were given. */
struct selection {
	char states[64];  /* letters; "": any */
	const char *name; /* a pattern of fnmatch(3), or NULL */
	bool has_regex;
	regex_t regex;
};

/* "R", "R,D" or "RD"; more of these options add to it. -EINVAL with a sentence. */
int selection_add_states(struct selection *selection, const char *text, struct err *err);

/* An extended regular expression for what is in the stacks. -EINVAL with a sentence. */
int selection_set_regex(struct selection *selection, const char *text, struct err *err);

/* Removes the other threads and tasks from the trace. */
void selection_apply(const struct selection *selection, struct trace *trace);

void selection_deinit(struct selection *selection);

#endif
