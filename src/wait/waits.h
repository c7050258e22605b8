/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_WAITS_H
#define STAKEOUT_WAIT_WAITS_H

#include "model/trace.h"

/* Says of each thread what it waits for. Its stacks have their names: they tell what memory alone does not. False when memory is exhausted. */
bool waits_find(struct trace *trace);

/* What only all processes together tell, be it a single one. To be called when waits_find() was for each. */
void waits_find_among(struct trace *const *traces, size_t n);

#endif
