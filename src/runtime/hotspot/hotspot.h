/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_HOTSPOT_H
#define STAKEOUT_RUNTIME_HOTSPOT_HOTSPOT_H

#include "runtime/runtime.h"

/*
 * Java on HotSpot, 8 and later: interpreted and compiled methods, what was inlined into these, and stubs. All that tells of
 * a stack is on it; what the code there is, and the names, are read from the process.
 */
extern const struct runtime_ops hotspot_runtime;

#endif
