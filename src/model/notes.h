/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_NOTES_H
#define STAKEOUT_MODEL_NOTES_H

#include "base/vec.h"

/* What the reader of a report has to know: fallbacks taken, what is missing and how to get it. Each text is there once. */
struct notes {
	VEC_FIELDS(char *); /* owned */
};

void notes_add(struct notes *notes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void notes_add_all(struct notes *notes, const struct notes *more);
void notes_deinit(struct notes *notes);

#endif
