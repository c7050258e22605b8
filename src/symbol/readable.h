/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_READABLE_H
#define STAKEOUT_SYMBOL_READABLE_H

#include <stdbool.h>

#include "base/arena.h"

/*
 * Names as the source has them, each made once. Demangling a C++ name takes as long as finding it, so many are made at
 * once, on all cores.
 */
struct readable;

/* Names are interned in the arena, which must outlive it. NULL when memory is exhausted. */
struct readable *readable_create(struct arena *arena, bool return_types);
void readable_destroy(struct readable *readable);

/* Announces an interned name that will be asked for. False when memory is exhausted. */
bool readable_want(struct readable *readable, const char *name);
void readable_prepare(struct readable *readable);

/* The source form of an interned name, or the name itself when it is not mangled. */
const char *readable_name(struct readable *readable, const char *name);

#endif
