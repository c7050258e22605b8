/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_FOREGROUND_H
#define STAKEOUT_BASE_FOREGROUND_H

#include <stdbool.h>

/* What the calling thread was before; all zero: it was not changed. */
struct foreground {
	bool begun;
	int policy;
};

/*
 * From here on the calling thread gets a CPU before all ordinary ones, until foreground_end(): for work of a few milliseconds that
 * is worth nothing if it is interrupted. Nothing happens where that is not allowed, if it is so already, or when called twice.
 */
void foreground_begin(struct foreground *f);

void foreground_end(struct foreground *f);

#endif
