/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_JITDUMP_H
#define STAKEOUT_SYMBOL_SOURCE_JITDUMP_H

#include "base/err.h"
#include "symbol/source.h"

/*
 * Names and lines of code that a JIT compiler made, from the binary file that it writes for perf (jit-PID.dump; the
 * format is in Linux's tools/perf/Documentation/jitdump-specification.txt). The last record for an address counts:
 * records are in the order of time.
 *
 * Only the address of each function is kept, and where in the file its name and lines are. The file is never mapped:
 * the target may cut it short at any time.
 */
struct jitdump_source;

extern const struct source_ops jitdump_source_ops;

/*
 * Takes the descriptor over, also on failure. When only a part of the file could be used, because it is damaged or too
 * large, err says so although 0 is returned; a last record that is still being written is not damage.
 */
int jitdump_source_create(int fd, struct err *err, struct jitdump_source **out);

#endif
