/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_PYTHON_H
#define STAKEOUT_RUNTIME_PYTHON_PYTHON_H

#include "runtime/runtime.h"

/* CPython 3.8 to 3.15: docs/internals.md tells how it is read. */
extern const struct runtime_ops python_runtime;

#endif
