/* SPDX-License-Identifier: MIT */
#include "dwarf/abbrev.h"

#include <dwarf.h>
#include <stdlib.h>

enum {
	MAX_ABBREVS = 1 << 20,
	MAX_ATTRS = 1 << 22,
	MAX_ATTRS_OF_ONE = 256, /* attributes without bytes could make a small entry slow to read */
};

int form_size(uint16_t form, const struct form_sizes *sizes)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return sizes->address;
	case DW_FORM_ref_addr: /* DWARF 2 gave it the size of an address */
		return sizes->version <= 2 ? sizes->address : sizes->offset;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_GNU_ref_alt:
		return sizes->offset;
	default:
		return -1;
	}
}

/* Skipping these makes a C program quick to read: most of its entries are types. */
static enum abbrev_kind kind_of(uint32_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return ABBREV_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return ABBREV_INLINED;
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_formal_parameter:
	case DW_TAG_variable:
	case DW_TAG_member:
	case DW_TAG_GNU_formal_parameter_pack:
	case DW_TAG_GNU_template_parameter_pack:
		return ABBREV_DATA;
	default:
		return ABBREV_OTHER;
	}
}

static enum attr attr_of(uint64_t name)
{
	switch (name) {
	case DW_AT_name:
		return ATTR_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return ATTR_LINKAGE_NAME;
	case DW_AT_low_pc:
		return ATTR_LOW_PC;
	case DW_AT_high_pc:
		return ATTR_HIGH_PC;
	case DW_AT_ranges:
		return ATTR_RANGES;
	case DW_AT_entry_pc:
		return ATTR_ENTRY_PC;
	case DW_AT_abstract_origin:
		return ATTR_ORIGIN;
	case DW_AT_specification:
		return ATTR_SPECIFICATION;
	case DW_AT_call_file:
		return ATTR_CALL_FILE;
	case DW_AT_call_line:
		return ATTR_CALL_LINE;
	case DW_AT_call_column:
		return ATTR_CALL_COLUMN;
	case DW_AT_sibling:
		return ATTR_SIBLING;
	case DW_AT_language:
		return ATTR_LANGUAGE;
	case DW_AT_comp_dir:
		return ATTR_COMP_DIR;
	case DW_AT_stmt_list:
		return ATTR_STMT_LIST;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return ATTR_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return ATTR_DWO_ID;
	case DW_AT_str_offsets_base:
		return ATTR_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return ATTR_ADDR_BASE;
	case DW_AT_rnglists_base:
		return ATTR_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return ATTR_RANGES_BASE;
	default:
		return ATTR_IGNORED;
	}
}

static void add_attr(struct abbrev *abbrev, const struct abbrev_attr *attr)
{
	abbrev->nattrs++;
	abbrev->has_sibling |= attr->attr == ATTR_SIBLING;
	if (attr->size < 0)
		abbrev->fixed_size = ABBREV_VARIES;
	else if (abbrev->fixed_size != ABBREV_VARIES)
		abbrev->fixed_size += (uint32_t)attr->size;
}

static bool read_attrs(struct abbrevs *abbrevs, struct abbrev *abbrev, struct cursor *c, const struct form_sizes *sizes)
{
	while (!c->bad) {
		uint64_t name = cursor_uleb(c), form = cursor_uleb(c);
		struct abbrev_attr attr = {.form = (uint16_t)form, .attr = (uint8_t)attr_of(name)};

		if (attr.form == DW_FORM_implicit_const)
			attr.implicit = cursor_sleb(c);
		if (c->bad || (!name && !form))
			break;
		attr.size = (int8_t)form_size(attr.form, sizes);
		if (abbrevs->attrs.len == MAX_ATTRS || abbrev->nattrs == MAX_ATTRS_OF_ONE ||
		    !vec_push(&abbrevs->attrs, attr))
			return false;
		add_attr(abbrev, &attr);
	}
	return true;
}

static void skip_attrs(struct cursor *c)
{
	uint64_t name, form;

	do {
		name = cursor_uleb(c);
		form = cursor_uleb(c);
		if (form == DW_FORM_implicit_const)
			cursor_sleb(c);
	} while (!c->bad && (name || form));
}

static int compare(const void *a, const void *b)
{
	const struct abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static bool read_all(struct abbrevs *abbrevs, struct cursor *c, const struct form_sizes *sizes, uint64_t until)
{
	for (;;) {
		struct abbrev abbrev = {.code = cursor_uleb(c)};

		if (c->bad || abbrev.code == 0)
			break;
		abbrev.tag = (uint32_t)cursor_uleb(c);
		abbrev.has_children = cursor_u8(c) == DW_CHILDREN_yes;
		abbrev.kind = (uint8_t)kind_of(abbrev.tag);
		abbrev.first_attr = (uint32_t)abbrevs->attrs.len;
		if (until && abbrev.code != until) {
			skip_attrs(c);
			continue;
		}
		if (!read_attrs(abbrevs, &abbrev, c, sizes))
			return false;
		if (c->bad)
			break;
		if (abbrevs->len == MAX_ABBREVS || !vec_push(abbrevs, abbrev))
			return false;
		abbrevs->dense &= abbrev.code == abbrevs->len;
		if (abbrev.code == until)
			break;
	}
	return true;
}

bool abbrevs_read(struct abbrevs *abbrevs, struct cursor at, const struct form_sizes *sizes, uint64_t until)
{
	const uint8_t *from = at.p;
	bool ok;

	abbrevs->dense = true;
	ok = read_all(abbrevs, &at, sizes, until);
	abbrevs->bytes = (size_t)(at.p - from);
	if (ok && !abbrevs->dense)
		qsort(abbrevs->data, abbrevs->len, sizeof(*abbrevs->data), compare);
	return ok;
}

void abbrevs_deinit(struct abbrevs *abbrevs)
{
	vec_deinit(&abbrevs->attrs);
	vec_deinit(abbrevs);
}

const struct abbrev *abbrevs_search(const struct abbrevs *abbrevs, uint64_t code)
{
	const struct abbrev key = {.code = code};

	return abbrevs->len ? bsearch(&key, abbrevs->data, abbrevs->len, sizeof(key), compare) : NULL;
}
