/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_V8_H
#define STAKEOUT_RUNTIME_V8_V8_H

#include "runtime/runtime.h"

/* JavaScript in V8, as Node.js has it. */
extern const struct runtime_ops v8_runtime;

#endif
