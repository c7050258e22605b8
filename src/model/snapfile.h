/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_SNAPFILE_H
#define STAKEOUT_MODEL_SNAPFILE_H

#include <stdio.h>

#include "base/err.h"
#include "model/snapshot.h"

/*
 * A snapshot on disk (--save, stakeout replay). Versioned, little-endian, every length checked on reading: a damaged
 * file gives an error, never a crash.
 */
int snapfile_write(const struct snapshot *snap, FILE *out, struct err *err);
int snapfile_read(FILE *in, struct err *err, struct snapshot **out);

#endif
