/* SPDX-License-Identifier: MIT */
#include "dwarf/entry.h"

#include <dwarf.h>

static void take_bases(struct unit_view *view, const struct entry *root)
{
	value_number(entry_value(root, ATTR_STR_OFFSETS_BASE), &view->str_offsets_base);
	value_number(entry_value(root, ATTR_ADDR_BASE), &view->addr_base);
	value_number(entry_value(root, ATTR_RNGLISTS_BASE), &view->rnglists_base);
	value_address(view, entry_value(root, ATTR_LOW_PC), &view->low_pc); /* an index needs addr_base */
}

bool unit_view_init(struct unit_view *view, const struct dwarf_file *file, const struct dwarf_unit *unit,
		    bool root_only, struct entry *root)
{
	struct cursor c;
	uint64_t code;

	*view = (struct unit_view){.file = file, .unit = *unit, .addr_file = file, .ranges_file = file};
	c = unit_cursor(view, unit->dies);
	code = cursor_uleb(&c);
	if (!abbrevs_read(&view->abbrevs, dwarf_cursor(file, &file->abbrev, unit->abbrevs), &unit->sizes,
			  root_only ? code : 0) ||
	    !entry_read_at(view, unit->dies, root))
		return false;
	take_bases(view, root);
	return true;
}

void unit_view_deinit(struct unit_view *view)
{
	abbrevs_deinit(&view->abbrevs);
}

struct cursor unit_cursor(const struct unit_view *view, uint64_t offset)
{
	struct cursor c = dwarf_cursor(view->file, &view->file->info, offset);

	if (offset < view->unit.dies || offset >= view->unit.end)
		cursor_fail(&c);
	else
		c.end = c.start + view->unit.end;
	return c;
}

bool value_read(const struct form_sizes *sizes, struct cursor *c, uint16_t form, int64_t implicit, struct value *out)
{
	int size = form_size(form, sizes);

	out->form = form;
	if (size >= 0 && size <= 8) {
		if (form == DW_FORM_implicit_const)
			out->number = (uint64_t)implicit;
		else if (form == DW_FORM_flag_present)
			out->number = 1;
		else
			out->number = cursor_uint(c, (unsigned)size);
		return !c->bad;
	}
	switch (form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		out->number = cursor_uleb(c);
		break;
	case DW_FORM_sdata:
		out->number = (uint64_t)cursor_sleb(c);
		break;
	case DW_FORM_string:
		out->string = cursor_cstr(c);
		break;
	case DW_FORM_exprloc:
	case DW_FORM_block:
		cursor_skip(c, cursor_uleb(c));
		break;
	case DW_FORM_block1:
		cursor_skip(c, cursor_u8(c));
		break;
	case DW_FORM_block2:
		cursor_skip(c, cursor_u16(c));
		break;
	case DW_FORM_block4:
		cursor_skip(c, cursor_u32(c));
		break;
	case DW_FORM_data16:
		cursor_skip(c, 16);
		break;
	case DW_FORM_indirect:
		form = (uint16_t)cursor_uleb(c);
		if (form == DW_FORM_indirect || form == DW_FORM_implicit_const)
			return false;
		return value_read(sizes, c, form, 0, out);
	default:
		return false;
	}
	return !c->bad;
}

bool entry_read(const struct unit_view *view, struct cursor *c, const struct abbrev *abbrev, struct entry *out)
{
	out->abbrev = abbrev;
	out->present = 0;
	for (uint32_t i = 0; i < abbrev->nattrs; i++) {
		const struct abbrev_attr *attr = &view->abbrevs.attrs.data[abbrev->first_attr + i];

		if (attr->attr == ATTR_IGNORED && attr->size >= 0) {
			if (!cursor_skip(c, (uint64_t)attr->size))
				return false;
			continue;
		}
		if (!value_read(&view->unit.sizes, c, attr->form, attr->implicit, &out->values[attr->attr]))
			return false;
		out->present |= 1u << attr->attr;
	}
	return true;
}

bool entry_skip(const struct unit_view *view, struct cursor *c, const struct abbrev *abbrev, uint64_t *sibling)
{
	const struct dwarf_file *file;
	struct value value;

	*sibling = 0;
	if (abbrev->fixed_size != ABBREV_VARIES && !abbrev->has_sibling)
		return cursor_skip(c, abbrev->fixed_size);
	for (uint32_t i = 0; i < abbrev->nattrs; i++) {
		const struct abbrev_attr *attr = &view->abbrevs.attrs.data[abbrev->first_attr + i];

		if (attr->size >= 0 && attr->attr != ATTR_SIBLING) {
			if (!cursor_skip(c, (uint64_t)attr->size))
				return false;
			continue;
		}
		if (!value_read(&view->unit.sizes, c, attr->form, attr->implicit, &value))
			return false;
		if (attr->attr == ATTR_SIBLING &&
		    (!value_reference(view, &value, &file, sibling) || file != view->file))
			*sibling = 0;
	}
	return true;
}

bool entry_read_at(const struct unit_view *view, uint64_t offset, struct entry *out)
{
	struct cursor c = unit_cursor(view, offset);
	const struct abbrev *abbrev = abbrevs_find(&view->abbrevs, cursor_uleb(&c));

	return abbrev && entry_read(view, &c, abbrev, out);
}

bool unit_address(const struct unit_view *view, uint64_t index, uint64_t *address)
{
	uint8_t size = view->unit.sizes.address;
	struct cursor c;

	if (index > UINT32_MAX)
		return false;
	c = dwarf_cursor(view->addr_file, &view->addr_file->addr, view->addr_base + index * size);
	*address = cursor_uint(&c, size);
	return !c.bad;
}

bool value_address(const struct unit_view *view, const struct value *value, uint64_t *address)
{
	switch (value->form) {
	case DW_FORM_addr:
		*address = value->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return unit_address(view, value->number, address);
	default:
		return false;
	}
}

bool value_number(const struct value *value, uint64_t *number)
{
	switch (value->form) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_sec_offset:
		*number = value->number;
		return true;
	default:
		return false;
	}
}

static const char *indexed_string(const struct unit_view *view, uint64_t index)
{
	uint8_t size = view->unit.sizes.offset;
	struct cursor c;
	uint64_t offset;

	if (index > UINT32_MAX)
		return NULL;
	c = dwarf_cursor(view->file, &view->file->str_offsets, view->str_offsets_base + index * size);
	offset = cursor_uint(&c, size);
	return c.bad ? NULL : dwarf_string(&view->file->str, offset);
}

const char *value_string(const struct unit_view *view, const struct value *value)
{
	switch (value->form) {
	case DW_FORM_string:
		return value->string;
	case DW_FORM_strp:
		return dwarf_string(&view->file->str, value->number);
	case DW_FORM_line_strp:
		return dwarf_string(&view->file->line_str, value->number);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return indexed_string(view, value->number);
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return view->file->alt ? dwarf_string(&view->file->alt->str, value->number) : NULL;
	default:
		return NULL;
	}
}

bool value_reference(const struct unit_view *view, const struct value *value, const struct dwarf_file **file,
		     uint64_t *offset)
{
	*file = view->file;
	*offset = value->number;
	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*offset += view->unit.offset;
		return true;
	case DW_FORM_ref_addr:
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*file = view->file->alt;
		return *file != NULL;
	default:
		return false;
	}
}
