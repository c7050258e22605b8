/* SPDX-License-Identifier: MIT */
#include "dwarf/file.h"

#include <dwarf.h>
#include <stddef.h>
#include <string.h>

#include "base/sorted.h"

enum {
	MAX_UNITS = 1 << 22,
	MAX_STRING = 32 << 10, /* longer ones are damage, not names */
};

struct cursor dwarf_cursor(const struct dwarf_file *file, const struct span *section, uint64_t offset)
{
	struct cursor c = cursor_init(section->data, section->len);

	c.big_endian = file->big_endian;
	if (offset) /* a missing section has no start to count from */
		cursor_seek(&c, offset);
	return c;
}

const char *dwarf_string(const struct span *section, uint64_t offset)
{
	size_t left = offset < section->len ? section->len - offset : 0;

	if (!left || !memchr(section->data + offset, 0, left < MAX_STRING ? left : MAX_STRING))
		return NULL;
	return (const char *)section->data + offset;
}

uint64_t dwarf_initial_length(struct cursor *c, uint8_t *offset_size)
{
	uint64_t length = cursor_u32(c);

	*offset_size = 4;
	if (length == UINT32_MAX) {
		*offset_size = 8;
		length = cursor_u64(c);
	} else if (length >= 0xfffffff0) { /* reserved */
		cursor_fail(c);
	}
	return length;
}

/* Versions outside 2…5 are from the future, or garbage: their units are left out. */
static bool read_header(struct cursor *c, struct dwarf_unit *unit)
{
	unit->sizes.version = cursor_u16(c);
	if (unit->sizes.version < 2 || unit->sizes.version > 5)
		return false;
	unit->type = DW_UT_compile;
	if (unit->sizes.version == 5) {
		unit->type = cursor_u8(c);
		unit->sizes.address = cursor_u8(c);
		unit->abbrevs = cursor_uint(c, unit->sizes.offset);
		if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
			unit->dwo_id = cursor_u64(c);
		if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
			cursor_skip(c, 8 + unit->sizes.offset);
	} else {
		unit->abbrevs = cursor_uint(c, unit->sizes.offset);
		unit->sizes.address = cursor_u8(c);
	}
	return !c->bad && unit->sizes.address <= 8;
}

static bool read_units(struct dwarf_file *file)
{
	struct cursor c = dwarf_cursor(file, &file->info, 0);

	while (cursor_left(&c) && file->units.len < MAX_UNITS) {
		struct dwarf_unit unit = {.offset = cursor_offset(&c)};
		uint64_t length = dwarf_initial_length(&c, &unit.sizes.offset);
		struct cursor header = c;

		if (!cursor_skip(&c, length))
			break;
		unit.end = cursor_offset(&c);
		if (!read_header(&header, &unit) || cursor_offset(&header) > unit.end)
			continue;
		unit.dies = cursor_offset(&header);
		if (!vec_push(&file->units, unit))
			return false;
	}
	return true;
}

bool dwarf_file_init(struct dwarf_file *file, struct image *image, bool split)
{
	static const struct {
		const char *name, *split_name;
		size_t to;
	} sections[] = {
		{".debug_info", ".debug_info.dwo", offsetof(struct dwarf_file, info)},
		{".debug_line", NULL, offsetof(struct dwarf_file, line)},
		{".debug_abbrev", ".debug_abbrev.dwo", offsetof(struct dwarf_file, abbrev)},
		{".debug_str", ".debug_str.dwo", offsetof(struct dwarf_file, str)},
		{".debug_line_str", NULL, offsetof(struct dwarf_file, line_str)},
		{".debug_str_offsets", ".debug_str_offsets.dwo", offsetof(struct dwarf_file, str_offsets)},
		{".debug_addr", NULL, offsetof(struct dwarf_file, addr)},
		{".debug_ranges", NULL, offsetof(struct dwarf_file, ranges)},
		{".debug_rnglists", ".debug_rnglists.dwo", offsetof(struct dwarf_file, rnglists)},
		{".debug_aranges", NULL, offsetof(struct dwarf_file, aranges)},
	};
	enum { COUNT = sizeof(sections) / sizeof(sections[0]) };
	const char *names[COUNT];
	size_t n = 0;

	*file = (struct dwarf_file){.big_endian = image_is_big_endian(image)};
	for (size_t i = 0; i < COUNT; i++) {
		names[n] = split ? sections[i].split_name : sections[i].name;
		n += names[n] != NULL;
	}
	image_unpack(image, names, n);
	for (size_t i = 0; i < COUNT; i++) {
		const char *name = split ? sections[i].split_name : sections[i].name;

		if (name)
			*(struct span *)((char *)file + sections[i].to) = image_section(image, name);
	}
	return read_units(file);
}

void dwarf_file_deinit(struct dwarf_file *file)
{
	vec_deinit(&file->units);
}

/* The first unit that ends behind the offset, or NULL. */
static const struct dwarf_unit *first_beyond(const struct dwarf_file *file, uint64_t offset)
{
	size_t upto = sorted_upto(file->units.data, file->units.len, .end, offset);

	return upto < file->units.len ? &file->units.data[upto] : NULL;
}

const struct dwarf_unit *dwarf_file_unit(const struct dwarf_file *file, uint64_t offset)
{
	const struct dwarf_unit *unit = first_beyond(file, offset);

	return unit && offset >= unit->dies ? unit : NULL;
}

const struct dwarf_unit *dwarf_file_unit_from(const struct dwarf_file *file, uint64_t offset)
{
	const struct dwarf_unit *unit = first_beyond(file, offset);

	return unit && unit->offset == offset ? unit : NULL;
}
