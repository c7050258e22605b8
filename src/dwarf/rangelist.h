/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_RANGELIST_H
#define STAKEOUT_DWARF_RANGELIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "dwarf/entry.h"

/* The code that an entry covers: DW_AT_low_pc and DW_AT_high_pc, or a list in .debug_ranges or .debug_rnglists. */

struct pc_range {
	uint64_t start;
	uint64_t end;
};

/*
 * `budget` is how many entries of lists may still be read. No compiler lets entries share lists: if they did, a small
 * file could have a huge number of ranges.
 */
struct pc_ranges {
	VEC_FIELDS(struct pc_range);
	uint64_t budget;
};

/* Enough for all lists that the entries of the unit, or of its whole file, can have. */
uint64_t ranges_budget(const struct dwarf_file *file, const struct dwarf_file *ranges_file);

/* Replaces `out`. A damaged list keeps what came before the damage. False when memory is exhausted. */
bool entry_ranges(const struct unit_view *view, const struct entry *entry, struct pc_ranges *out);

#endif
