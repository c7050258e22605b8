/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_FILE_H
#define STAKEOUT_DWARF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/vec.h"
#include "dwarf/abbrev.h"
#include "elf/image.h"

/* The header of a unit in .debug_info. */
struct dwarf_unit {
	uint64_t offset; /* of the header, in .debug_info */
	uint64_t dies;   /* of the first entry */
	uint64_t end;
	uint64_t abbrevs; /* of the abbreviations, in .debug_abbrev */
	uint64_t dwo_id;  /* DWARF 5: the id that a skeleton and its split unit share; else 0 */
	struct form_sizes sizes;
	uint8_t type; /* DW_UT_* */
};

/* The sections of one file with DWARF, and its units. Never changes once it is open: any thread may read it. */
struct dwarf_file {
	struct span info;
	struct span abbrev;
	struct span line;
	struct span str;
	struct span line_str;
	struct span str_offsets;
	struct span addr;
	struct span ranges;
	struct span rnglists;
	struct span aranges;
	bool big_endian;
	const struct dwarf_file *alt; /* what dwz shares with other files, or NULL */
	VEC(struct dwarf_unit) units; /* by rising offset */
};

/* `split` reads the sections of a .dwo or .dwp file (.debug_info.dwo…). The image must outlive the file. False when
 * memory is exhausted. */
bool dwarf_file_init(struct dwarf_file *file, struct image *image, bool split);
void dwarf_file_deinit(struct dwarf_file *file);

/* A cursor over the section, at `offset`; a bad cursor when that is outside. */
struct cursor dwarf_cursor(const struct dwarf_file *file, const struct span *section, uint64_t offset);

/* The unit that has an entry at an offset of .debug_info, and the unit whose header is there; or NULL. */
const struct dwarf_unit *dwarf_file_unit(const struct dwarf_file *file, uint64_t offset);
const struct dwarf_unit *dwarf_file_unit_from(const struct dwarf_file *file, uint64_t offset);

/* The string at an offset, or NULL when that is outside or the string has no end. */
const char *dwarf_string(const struct span *section, uint64_t offset);

/* The length that starts a unit or a table: sets the size of its offsets, 4 or 8. */
uint64_t dwarf_initial_length(struct cursor *c, uint8_t *offset_size);

#endif
