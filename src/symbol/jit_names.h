/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_JIT_NAMES_H
#define STAKEOUT_SYMBOL_JIT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/notes.h"
#include "symbol/calls.h"

/*
 * Names of code that a JIT compiler made, from the files that it writes for perf (target/jit_files.h), in order. The
 * files are looked for when the first address is asked for. Code announced through the GDB JIT interface is handled as
 * a module instead.
 */
struct jit_names;

struct target;

/* The target and the notes must outlive it. NULL when memory is exhausted. */
struct jit_names *jit_names_create(const struct target *target, struct notes *notes);
void jit_names_destroy(struct jit_names *names);

/*
 * Replaces `out` by what is known of an address of the target. False when nothing is, or when memory is exhausted. A
 * file that cannot be used gives a note.
 */
bool jit_names_find(struct jit_names *names, uint64_t address, struct calls *out);

#endif
