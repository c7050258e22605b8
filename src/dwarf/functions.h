/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_FUNCTIONS_H
#define STAKEOUT_DWARF_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "dwarf/entry.h"
#include "dwarf/line.h"
#include "dwarf/unit_map.h"

/* The functions of a unit and the calls inlined into them. */
struct functions {
	VEC(struct map_scope) scopes;
	VEC(struct map_piece) pieces; /* offsets from code->start */
	VEC(uint64_t) elsewhere;      /* entries in other units: see FUNCTIONS_ELSEWHERE */
};

/*
 * A scope's `name` is the place of the entry that has the name: its offset from the start of the unit, or with this bit
 * an index into `elsewhere`. There it is an offset of .debug_info, with FUNCTIONS_ALT of the file shared by dwz.
 */
#define FUNCTIONS_ELSEWHERE (UINT32_C(1) << 31)
#define FUNCTIONS_ALT       (UINT64_C(1) << 63)

/* A damaged unit keeps what came before the damage. False when memory is exhausted. */
bool functions_read(struct functions *functions, const struct unit_view *view, const struct code_bounds *code);
void functions_deinit(struct functions *functions);

#endif
