/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_SNAPFILE_WAITS_H
#define STAKEOUT_MODEL_SNAPFILE_WAITS_H

#include "model/snapfile_parts.h"

/* The section that tells what a thread waits for on descriptors and files. */
void put_wait(struct bytes *b, const struct snap_wait *wait);
int get_wait(struct cursor *c, struct snapshot *snap, struct err *err);

#endif
