/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_ENTRY_H
#define STAKEOUT_DWARF_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/abbrev.h"
#include "dwarf/file.h"

/* Reading the entries (DIEs) of a unit. */

/* A unit with everything that its values refer to. Nothing in it changes once it is open. */
struct unit_view {
	const struct dwarf_file *file;
	struct dwarf_unit unit;
	struct abbrevs abbrevs;

	/* A split unit takes addresses (and, before DWARF 5, range lists) from the file that has its skeleton. */
	const struct dwarf_file *addr_file;
	const struct dwarf_file *ranges_file;

	uint64_t str_offsets_base;
	uint64_t addr_base;
	uint64_t rnglists_base;
	uint64_t ranges_base; /* added to DW_AT_ranges: GNU's split DWARF 4 */
	uint64_t low_pc;      /* the base address of range lists */
};

/* An attribute's value as it stands in the file. */
struct value {
	uint16_t form;
	uint64_t number;    /* a constant, an offset or an index; what it means depends on the form */
	const char *string; /* DW_FORM_string */
};

/* An entry: the attributes that are used. */
struct entry {
	const struct abbrev *abbrev;
	uint32_t present; /* bit for each enum attr; the values of others are not set */
	struct value values[ATTR_COUNT];
};

static inline bool entry_has(const struct entry *entry, enum attr attr)
{
	return entry->present >> attr & 1;
}

/* The attribute's value; when it is not there, one with form 0, which every reader ignores. */
static inline const struct value *entry_value(const struct entry *entry, enum attr attr)
{
	static const struct value none;

	return entry_has(entry, attr) ? &entry->values[attr] : &none;
}

/*
 * Opens `unit` and takes the bases from its root, which is left in *root. With `root_only` other entries cannot be
 * read. False when memory is exhausted or the unit is damaged; deinit in any case.
 */
bool unit_view_init(struct unit_view *view, const struct dwarf_file *file, const struct dwarf_unit *unit,
		    bool root_only, struct entry *root);
void unit_view_deinit(struct unit_view *view);

/* A cursor from `offset` of .debug_info to the end of the unit. */
struct cursor unit_cursor(const struct unit_view *view, uint64_t offset);

/* Reads the attributes of the entry whose code has just been read. False when they are damaged. */
bool entry_read(const struct unit_view *view, struct cursor *c, const struct abbrev *abbrev, struct entry *out);

/* Skips them; with `sibling`, gives the offset in .debug_info of the next sibling, or 0. */
bool entry_skip(const struct unit_view *view, struct cursor *c, const struct abbrev *abbrev, uint64_t *sibling);

/* Reads code and attributes at an offset of .debug_info. */
bool entry_read_at(const struct unit_view *view, uint64_t offset, struct entry *out);

bool value_address(const struct unit_view *view, const struct value *value, uint64_t *address);
bool value_number(const struct value *value, uint64_t *number); /* constants and offsets into other sections */
const char *value_string(const struct unit_view *view, const struct value *value);

/* The entry that the value refers to: its file, and its offset in the .debug_info there. */
bool value_reference(const struct unit_view *view, const struct value *value, const struct dwarf_file **file,
		     uint64_t *offset);

/* Entry `index` of .debug_addr. */
bool unit_address(const struct unit_view *view, uint64_t index, uint64_t *address);

/* Consumes a value. False when it is damaged or of an unknown form. */
bool value_read(const struct form_sizes *sizes, struct cursor *c, uint16_t form, int64_t implicit, struct value *out);

#endif
