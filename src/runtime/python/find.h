/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_FIND_H
#define STAKEOUT_RUNTIME_PYTHON_FIND_H

#include <stdbool.h>

#include "runtime/python/layout.h"
#include "target/target.h"

/*
 * Whether a process may have Python: by the names of its files, of which few interpreters go without; else by what its program and
 * libraries export, if their memory can be read (NULL: it cannot).
 */
bool python_is_likely(const struct maps *maps, struct mem *mem);

/* Finds the file that has the interpreter, and what it exports. False: there is none. */
bool python_find(struct target *target, struct python_symbols *out);

#endif
