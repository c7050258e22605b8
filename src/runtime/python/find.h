/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_FIND_H
#define STAKEOUT_RUNTIME_PYTHON_FIND_H

#include <stdbool.h>

#include "runtime/python/layout.h"
#include "target/target.h"

/* Whether a map looks like one of a process that has Python: by the names of files, of which no interpreter goes without. */
bool python_is_likely(const struct maps *maps);

/* Finds the file that has the interpreter, and what it exports. False: there is none. */
bool python_find(struct target *target, struct python_symbols *out);

#endif
