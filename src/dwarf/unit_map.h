/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DWARF_UNIT_MAP_H
#define STAKEOUT_DWARF_UNIT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is known of the code of one unit, laid out for lookups: functions and inlined calls as pieces of the address
 * space that do not overlap, lines as rows. It is made from DWARF (dwarf/dwarf.h) or read from the cache; addresses
 * are 32-bit offsets from a base, which any real program fits into.
 */

#define MAP_NONE    UINT32_MAX
#define MAP_NO_FILE UINT16_MAX

/* From `start` to the start of the next piece the innermost call is `scope`; MAP_NONE: no function is known. */
struct map_piece {
	uint32_t start;
	uint32_t scope;
};

struct map_scope {
	uint32_t parent; /* the scope that it was inlined into; MAP_NONE: it is a function of its own */
	uint32_t name;   /* for unit_map_ops.name */
	uint32_t at;     /* if inlined, the line of the call; else the offset of the function's entry, or MAP_NONE */
	uint16_t file;   /* of the call; MAP_NO_FILE when not known */
	uint16_t column; /* of the call */
};

/* From `start` to the start of the next row the code belongs to this line; line 0: to none. */
struct map_row {
	uint32_t start;
	uint32_t line;
	uint16_t file;
	uint16_t column;
};

/* The parts of a path, from the last one back to the first absolute one; missing parts are NULL. */
struct map_file {
	const char *name;
	const char *dir;
	const char *comp_dir;
};

struct map_name {
	const char *linkage;
	const char *name;
};

struct unit_map;

struct unit_map_ops {
	/* False when the id or what it leads to is damaged. Not for several threads at once. */
	bool (*name)(struct unit_map *map, uint32_t id, struct map_name *out);
	bool (*file)(struct unit_map *map, uint16_t id, struct map_file *out);
	void (*destroy)(struct unit_map *map);
};

struct unit_map {
	const struct unit_map_ops *ops;
	uint64_t base;
	const struct map_piece *pieces;
	size_t npieces;
	const struct map_scope *scopes;
	size_t nscopes;
	const struct map_row *rows;
	size_t nrows;
	bool whole; /* nothing that the unit refers to was missing: worth keeping */
	bool in_file; /* its strings are in a file that may change: copy them before looking at them */
};

/* The innermost scope at an address, or MAP_NONE. */
uint32_t unit_map_scope(const struct unit_map *map, uint64_t vaddr);

/* The row at an address; NULL when there is none or it has no line. */
const struct map_row *unit_map_row(const struct unit_map *map, uint64_t vaddr);

static inline void unit_map_destroy(struct unit_map *map)
{
	if (map)
		map->ops->destroy(map);
}

#endif
