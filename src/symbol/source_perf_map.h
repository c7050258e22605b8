/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_PERF_MAP_H
#define STAKEOUT_SYMBOL_SOURCE_PERF_MAP_H

#include "base/err.h"
#include "symbol/source.h"

/*
 * Names of code that a JIT compiler made, from the text file that it writes for perf: a line for each function, with
 * its address and size in hexadecimal and its name. Later lines count where they overlap earlier ones: code is
 * replaced.
 *
 * Such files grow to 100 MB. Only the ranges are kept; names are read from the file when they are asked for. The file
 * is never mapped: the target may cut it short at any time.
 */
struct perf_map_source;

extern const struct source_ops perf_map_source_ops;

/*
 * Takes the descriptor over, also on failure. Lines that make no sense are left out. When the file is too large to be
 * used whole, err says so although 0 is returned.
 */
int perf_map_source_create(int fd, struct err *err, struct perf_map_source **out);

#endif
