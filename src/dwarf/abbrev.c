/* SPDX-License-Identifier: MIT */
#include "dwarf/abbrev.h"

#include <dwarf.h>
#include <stdlib.h>

enum {
	MAX_ABBREVS = 1 << 20,
	MAX_ATTRS = 1 << 22,
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

/* Skipping these is what makes a C program quick to read: most of its entries are types. */
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

static void add_size(struct abbrev *abbrev, uint16_t form, const struct form_sizes *sizes)
{
	int size = form_size(form, sizes);

	if (size < 0)
		abbrev->fixed_size = ABBREV_VARIES;
	else if (abbrev->fixed_size != ABBREV_VARIES)
		abbrev->fixed_size += (uint32_t)size;
}

static bool read_attrs(struct abbrevs *abbrevs, struct abbrev *abbrev, struct cursor *c, const struct form_sizes *sizes)
{
	while (!c->bad) {
		struct abbrev_attr attr = {0};

		attr.name = (uint16_t)cursor_uleb(c);
		attr.form = (uint16_t)cursor_uleb(c);
		if (attr.form == DW_FORM_implicit_const)
			attr.implicit = cursor_sleb(c);
		if (c->bad || (!attr.name && !attr.form))
			break;
		if (abbrevs->attrs.len == MAX_ATTRS || !vec_push(&abbrevs->attrs, attr))
			return false;
		abbrev->nattrs++;
		abbrev->has_sibling |= attr.name == DW_AT_sibling;
		add_size(abbrev, attr.form, sizes);
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

bool abbrevs_read(struct abbrevs *abbrevs, struct cursor at, const struct form_sizes *sizes, uint64_t until)
{
	abbrevs->dense = true;
	for (;;) {
		struct abbrev abbrev = {.code = cursor_uleb(&at)};

		if (at.bad || abbrev.code == 0)
			break;
		abbrev.tag = (uint32_t)cursor_uleb(&at);
		abbrev.has_children = cursor_u8(&at) == DW_CHILDREN_yes;
		abbrev.kind = (uint8_t)kind_of(abbrev.tag);
		abbrev.first_attr = (uint32_t)abbrevs->attrs.len;
		if (!read_attrs(abbrevs, &abbrev, &at, sizes))
			return false;
		if (at.bad)
			break;
		if (abbrevs->len == MAX_ABBREVS || !vec_push(abbrevs, abbrev))
			return false;
		abbrevs->dense &= abbrev.code == abbrevs->len;
		if (abbrev.code == until)
			break;
	}
	if (!abbrevs->dense)
		qsort(abbrevs->data, abbrevs->len, sizeof(*abbrevs->data), compare);
	return true;
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
