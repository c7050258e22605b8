/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_ABBREV_H
#define STAKEOUT_DWARF_ABBREV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/vec.h"

/* The abbreviations of a unit: for each kind of entry, what it is and which attributes it has, in which forms. */

/* The attributes that are used. */
enum attr {
	ATTR_IGNORED,
	ATTR_NAME,
	ATTR_LINKAGE_NAME,
	ATTR_LOW_PC,
	ATTR_HIGH_PC,
	ATTR_RANGES,
	ATTR_ENTRY_PC,
	ATTR_ORIGIN,        /* DW_AT_abstract_origin */
	ATTR_SPECIFICATION, /* for a member function that is defined outside of its class */
	ATTR_CALL_FILE,
	ATTR_CALL_LINE,
	ATTR_CALL_COLUMN,
	ATTR_SIBLING,

	/* Only at the root of a unit. */
	ATTR_LANGUAGE,
	ATTR_COMP_DIR,
	ATTR_STMT_LIST,
	ATTR_DWO_NAME,
	ATTR_DWO_ID,
	ATTR_STR_OFFSETS_BASE,
	ATTR_ADDR_BASE,
	ATTR_RNGLISTS_BASE,
	ATTR_RANGES_BASE,
	ATTR_COUNT,
};

struct abbrev_attr {
	int64_t implicit; /* the value, for DW_FORM_implicit_const */
	uint16_t form;
	uint8_t attr; /* enum attr */
	int8_t size;  /* of the value in bytes, or -1 when that depends on the value */
};

/* What an entry means when looking for code. */
enum abbrev_kind {
	ABBREV_OTHER,    /* functions may lie in it */
	ABBREV_DATA,     /* neither it nor what is in it is code */
	ABBREV_FUNCTION, /* DW_TAG_subprogram */
	ABBREV_INLINED,  /* DW_TAG_inlined_subroutine */
};

struct abbrev {
	uint64_t code;
	uint32_t tag;
	uint32_t first_attr; /* in abbrevs.attrs */
	uint32_t nattrs;
	uint32_t
		fixed_size; /* bytes of all attributes, if that does not depend on their values; else ABBREV_VARIES */
	uint8_t kind;       /* enum abbrev_kind */
	bool has_children;
	bool has_sibling; /* DW_AT_sibling is among the attributes */
};

#define ABBREV_VARIES UINT32_MAX

struct abbrevs {
	VEC_FIELDS(struct abbrev); /* by rising code */
	VEC(struct abbrev_attr) attrs;
	bool dense;   /* entry i has code i + 1 */
	size_t bytes; /* bytes of the table that were read */
};

/* Sizes that forms depend on. */
struct form_sizes {
	uint8_t address;
	uint8_t offset; /* 4, or 8 in 64-bit DWARF */
	uint16_t version;
};

/*
 * Reads the table at the cursor, all of it (`until` 0) or one code only, which is enough for the first entry of a unit.
 * A table that is cut short keeps what came before. False when memory is exhausted, or when the table is larger than
 * any real one.
 */
bool abbrevs_read(struct abbrevs *abbrevs, struct cursor at, const struct form_sizes *sizes, uint64_t until);
void abbrevs_deinit(struct abbrevs *abbrevs);

const struct abbrev *abbrevs_search(const struct abbrevs *abbrevs, uint64_t code);

/* NULL when there is none. */
static inline const struct abbrev *abbrevs_find(const struct abbrevs *abbrevs, uint64_t code)
{
	if (abbrevs->dense)
		return code - 1 < abbrevs->len ? &abbrevs->data[code - 1] : NULL;
	return abbrevs_search(abbrevs, code);
}

/* Bytes that the form takes, or -1 when that depends on the value. */
int form_size(uint16_t form, const struct form_sizes *sizes);

#endif
