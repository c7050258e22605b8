/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_DWARF_H
#define STAKEOUT_DWARF_DWARF_H

#include <stdint.h>

#include "base/err.h"
#include "dwarf/split.h"
#include "dwarf/unit_map.h"
#include "elf/image.h"

/*
 * The DWARF of one file: which unit an address belongs to, and the map of a unit. Units are found by the ranges at
 * their roots, since .debug_aranges may be missing; only the units that are asked for are read.
 */
struct dwarf;

struct dwarf_options {
	struct image *image;   /* holds the DWARF */
	struct image *alt;     /* the part that dwz shared with other files, or NULL */
	struct image *package; /* the .dwp file, or NULL; taken over, also on failure */
	split_open open_split; /* for .dwo files */
	void *open_split_ctx;
};

/* The images must outlive it. -ENOENT when there is no DWARF. */
int dwarf_create(const struct dwarf_options *options, struct err *err, struct dwarf **out);
void dwarf_destroy(struct dwarf *dwarf);

/* The number of the unit that has the code at an address, or MAP_NONE. */
uint32_t dwarf_unit_at(const struct dwarf *dwarf, uint64_t vaddr);

/* All units that have code: pieces of the address space with numbers of units, as dwarf_unit_at() gives them. */
const struct pieces *dwarf_units(const struct dwarf *dwarf);
uint32_t dwarf_nunits(const struct dwarf *dwarf);

/*
 * Reads a unit. Several threads may do so at once. A damaged unit gives what can be read of it. NULL when memory is
 * exhausted. The map must not outlive `dwarf`.
 */
struct unit_map *dwarf_map_unit(struct dwarf *dwarf, uint32_t unit);

/* A .dwo file that was needed and not found, or NULL. */
const char *dwarf_missing_split(const struct dwarf *dwarf);

/* A .dwo or .dwp file was changed while it was read. For the other files, ask whoever opened them. */
bool dwarf_split_has_changed(const struct dwarf *dwarf);

#endif
