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

struct pc_ranges {
	VEC_FIELDS(struct pc_range);
};

/* Replaces `out`. A damaged list keeps what came before the damage. False when memory is exhausted. */
bool entry_ranges(const struct unit_view *view, const struct entry *entry, struct pc_ranges *out);

#endif
