/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_DWARF_H
#define STAKEOUT_SYMBOL_SOURCE_DWARF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "elf/image.h"

/*
 * Source lines and inlined calls from DWARF, through libdw. Units are found by an index of our own, since
 * .debug_aranges may be missing or incomplete; the functions of a unit are indexed when the unit is first needed.
 * Split DWARF (.dwo) gives lines only: libdw would open whatever path the file names.
 */
struct dwarf_source;

/* One call at an address. Strings belong to the source; what is not known is NULL or 0. */
struct dwarf_call {
	const char *linkage; /* as the linker sees it, often mangled */
	const char *name;    /* as written in the source, without its scope */
	const char *file;
	const char *dir; /* that a relative `file` starts from; NULL when it is absolute, or that is not known */
	uint32_t line;
	uint32_t column;
	uint64_t start; /* address of the function; only of the last call, which is the one not inlined */
};

/* Innermost first; empty when no function is known. */
struct dwarf_calls {
	VEC_FIELDS(struct dwarf_call);
};

/*
 * `image` holds the DWARF, `alt` the part that dwz shared with other files, or NULL; both must outlive the source.
 * -ENOENT when there is no DWARF.
 */
int dwarf_source_create(struct image *image, struct image *alt, struct err *err, struct dwarf_source **out);
void dwarf_source_destroy(struct dwarf_source *source);

/*
 * Replaces `out` by the calls at an address. When the function is not known but the line is, there is one call that
 * has no name. False when nothing is known, or when memory is exhausted.
 */
bool dwarf_source_find(struct dwarf_source *source, uint64_t vaddr, struct dwarf_calls *out);

#endif
