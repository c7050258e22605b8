/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_DWARF_H
#define STAKEOUT_SYMBOL_SOURCE_DWARF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "dwarf/dwarf.h"
#include "symbol/calls.h"

/* Lines and inlined calls from DWARF. Only the units that addresses fall into are read, each once. */
struct dwarf_source;

/* As dwarf_create(). */
int dwarf_source_create(const struct dwarf_options *options, struct err *err, struct dwarf_source **out);
void dwarf_source_destroy(struct dwarf_source *source);

/* Reads the units of all these addresses at once, on all cores. */
void dwarf_source_prepare(struct dwarf_source *source, const uint64_t *vaddrs, size_t n);

/*
 * Replaces `out` by the calls at an address. When the function is not known but the line is, there is one call that
 * has no name. False when nothing is known, or when memory is exhausted.
 */
bool dwarf_source_find(struct dwarf_source *source, uint64_t vaddr, struct calls *out);

/* A .dwo file that was needed and not found, or NULL. */
const char *dwarf_source_missing(const struct dwarf_source *source);

#endif
