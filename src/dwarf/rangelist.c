/* SPDX-License-Identifier: MIT */
#include "dwarf/rangelist.h"

#include <dwarf.h>

uint64_t ranges_budget(const struct dwarf_file *file, const struct dwarf_file *ranges_file)
{
	return (uint64_t)file->rnglists.len + ranges_file->ranges.len; /* each takes more than a byte */
}

static bool add(struct pc_ranges *out, uint64_t start, uint64_t end)
{
	return start >= end || vec_push(out, (struct pc_range){.start = start, .end = end});
}

/* Pairs of offsets from a base, until 0, 0; a pair that starts with the highest address sets the base. */
static bool read_old(const struct unit_view *view, uint64_t offset, struct pc_ranges *out)
{
	uint8_t size = view->unit.sizes.address;
	uint64_t highest = size < 8 ? (UINT64_C(1) << 8 * size) - 1 : UINT64_MAX;
	uint64_t base = view->low_pc;
	struct cursor c = dwarf_cursor(view->ranges_file, &view->ranges_file->ranges, offset + view->ranges_base);

	for (; out->budget && !c.bad; out->budget--) {
		uint64_t start = cursor_uint(&c, size);
		uint64_t end = cursor_uint(&c, size);

		if (c.bad || (!start && !end))
			break;
		if (start == highest)
			base = end;
		else if (!add(out, (base + start) & highest, (base + end) & highest))
			return false;
	}
	return true;
}

static uint64_t indexed_address(const struct unit_view *view, struct cursor *c)
{
	uint64_t address = 0;

	if (!unit_address(view, cursor_uleb(c), &address))
		cursor_fail(c);
	return address;
}

static bool read_new(const struct unit_view *view, uint64_t offset, struct pc_ranges *out)
{
	uint8_t size = view->unit.sizes.address;
	uint64_t base = view->low_pc, start, end;
	struct cursor c = dwarf_cursor(view->file, &view->file->rnglists, offset);

	for (; out->budget; out->budget--) {
		uint8_t kind = cursor_u8(&c);

		switch (kind) {
		case DW_RLE_base_addressx:
			base = indexed_address(view, &c);
			continue;
		case DW_RLE_base_address:
			base = cursor_uint(&c, size);
			continue;
		case DW_RLE_startx_endx:
			start = indexed_address(view, &c);
			end = indexed_address(view, &c);
			break;
		case DW_RLE_startx_length:
			start = indexed_address(view, &c);
			end = start + cursor_uleb(&c);
			break;
		case DW_RLE_offset_pair:
			start = base + cursor_uleb(&c);
			end = base + cursor_uleb(&c);
			break;
		case DW_RLE_start_end:
			start = cursor_uint(&c, size);
			end = cursor_uint(&c, size);
			break;
		case DW_RLE_start_length:
			start = cursor_uint(&c, size);
			end = start + cursor_uleb(&c);
			break;
		default: /* DW_RLE_end_of_list, the end of the section, or damage */
			return true;
		}
		if (c.bad)
			return true;
		if (!add(out, start, end))
			return false;
	}
	return true;
}

/* DW_FORM_rnglistx: an index into the table of offsets that the base points at. */
static bool list_offset(const struct unit_view *view, const struct value *value, uint64_t *offset)
{
	uint8_t size = view->unit.sizes.offset;
	struct cursor c;

	if (value->form != DW_FORM_rnglistx)
		return value_number(value, offset);
	if (value->number > UINT32_MAX)
		return false;
	c = dwarf_cursor(view->file, &view->file->rnglists, view->rnglists_base + value->number * size);
	*offset = view->rnglists_base + cursor_uint(&c, size);
	return !c.bad;
}

bool entry_ranges(const struct unit_view *view, const struct entry *entry, struct pc_ranges *out)
{
	uint64_t low, high;

	out->len = 0;
	if (entry_has(entry, ATTR_RANGES)) {
		if (!list_offset(view, entry_value(entry, ATTR_RANGES), &low))
			return true;
		return view->unit.sizes.version < 5 ? read_old(view, low, out) : read_new(view, low, out);
	}
	if (!entry_has(entry, ATTR_HIGH_PC) || !value_address(view, entry_value(entry, ATTR_LOW_PC), &low))
		return true;
	if (value_number(entry_value(entry, ATTR_HIGH_PC), &high)) /* a length since DWARF 4 */
		return add(out, low, low + high);
	return !value_address(view, entry_value(entry, ATTR_HIGH_PC), &high) || add(out, low, high);
}
