/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_CODE_CACHE_FORMAT_H
#define STAKEOUT_SYMBOL_CODE_CACHE_FORMAT_H

#include <stdint.h>

#include "dwarf/unit_map.h"

/*
 * The payload of a cached module: the header, then blocks at multiples of 8. The store has checked that it was written
 * by this version on a machine with this byte order. To change anything here, or in the structs of unit_map.h that are
 * stored as they are, raise the version.
 */
enum { CODE_CACHE_VERSION = 2 };

/* Where a part is; offset 0: it is not there. */
struct cached_block {
	uint64_t offset;
	uint32_t len;
	uint32_t crc;
};

struct cached_header {
	uint32_t crc; /* of the rest of the header */
	uint32_t nunits;
	struct cached_block units;   /* nunits of struct cached_block, one for each unit */
	struct cached_block pieces;  /* struct cached_piece: which unit has which code */
	struct cached_block symbols; /* struct cached_symbols */
};

struct cached_piece {
	uint64_t start;
	uint32_t id;
	uint32_t zero;
};

/* Followed by the pieces, the symbols and their names. */
struct cached_symbols {
	uint32_t npieces;
	uint32_t nsymbols;
	uint32_t names_len;
	uint32_t zero;
};

struct cached_symbol {
	uint64_t start;
	uint64_t end;
	uint32_t name;       /* offset in the names */
	uint32_t len_source; /* length of the name << 8 | symbol.own << 7 | enum symbol_source */
};

/* Followed by pieces, scopes, rows, files, names and strings. */
struct cached_unit {
	uint64_t base;
	uint32_t npieces; /* struct map_piece */
	uint32_t nscopes; /* struct map_scope */
	uint32_t nrows;   /* struct map_row */
	uint32_t nfiles;  /* struct cached_file */
	uint32_t nnames;  /* struct cached_name */
	uint32_t strings_len;
};

/* Offsets in the strings; 0: not there. */
struct cached_file {
	uint32_t name;
	uint32_t dir;
	uint32_t comp_dir;
};

struct cached_name {
	uint32_t linkage;
	uint32_t name;
};

_Static_assert(sizeof(struct cached_block) == 16 && sizeof(struct cached_header) == 56, "no padding");
_Static_assert(sizeof(struct cached_piece) == 16 && sizeof(struct cached_symbol) == 24, "no padding");
_Static_assert(sizeof(struct map_piece) == 8 && sizeof(struct map_scope) == 16 && sizeof(struct map_row) == 12,
	       "no padding");
_Static_assert(sizeof(struct cached_unit) == 32, "no padding");

#endif
