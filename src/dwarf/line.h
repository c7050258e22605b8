/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_LINE_H
#define STAKEOUT_DWARF_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "dwarf/file.h"
#include "dwarf/unit_map.h"

/* The range of a file's code: DWARF of functions that the linker dropped points elsewhere. */
struct code_bounds {
	uint64_t start;
	uint64_t end;
};

/* Linkers give 0 or 1 to functions that they dropped, or the highest addresses. */
static inline bool is_code(const struct code_bounds *code, uint64_t vaddr)
{
	return vaddr > 1 && vaddr >= code->start && vaddr < code->end;
}

/* The line table of a unit. Strings are the file's. */
struct line_table {
	VEC(struct map_row) rows;   /* by rising address, offsets from code->start */
	VEC(struct map_file) files; /* by the numbers that rows and DW_AT_call_file have */
	size_t bytes; /* of the program and its header */
};

/*
 * Runs the line program at `offset` of .debug_line. A damaged one keeps the sequences before the damage. False when
 * memory is exhausted. `address_size` and `comp_dir` (may be NULL) are the unit's.
 */
bool line_table_read(struct line_table *table, const struct dwarf_file *file, uint64_t offset, uint8_t address_size,
		     const char *comp_dir, const struct code_bounds *code);
void line_table_deinit(struct line_table *table);

#endif
