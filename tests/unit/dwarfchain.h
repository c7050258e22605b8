/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_DWARFCHAIN_H
#define STAKEOUT_TESTS_DWARFCHAIN_H

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "dwarf/dwarf.h"
#include "libelf_of.h"

enum { CHAIN_MAX = 512 };

static inline void chain_add(char *out, struct unit_map *map, uint32_t scope, uint16_t file_number, uint32_t line)
{
	size_t len = strlen(out);
	struct map_name name = {0};
	struct map_file file = {.name = "?"};
	const char *slash;

	if (scope != MAP_NONE)
		map->ops->name(map, map->scopes[scope].name, &name);
	if (!map->ops->file(map, file_number, &file))
		file.name = "?";
	slash = strrchr(file.name, '/');
	snprintf(out + len, CHAIN_MAX - len, "%s%s %s:%u", len ? ", " : "",
		 name.name      ? name.name
		 : name.linkage ? name.linkage
				: "?",
		 slash ? slash + 1 : file.name, line);
}

/* The calls at an address, innermost first: "leaf l.c:3, outer l.c:9"; "" when nothing is known. */
static inline void chain_of_map(struct unit_map *map, uint64_t vaddr, char *out)
{
	const struct map_row *row = unit_map_row(map, vaddr);
	uint32_t scope = unit_map_scope(map, vaddr), line = row ? row->line : 0;
	uint16_t file = row ? row->file : MAP_NO_FILE;

	out[0] = '\0';
	if (scope == MAP_NONE && row)
		chain_add(out, map, MAP_NONE, file, line);
	while (scope != MAP_NONE) {
		assert_true(scope < map->nscopes);
		chain_add(out, map, scope, file, line);
		line = map->scopes[scope].at;
		file = map->scopes[scope].file;
		scope = map->scopes[scope].parent;
	}
}

static inline void chain_at(struct dwarf *dwarf, uint64_t vaddr, char *out)
{
	uint32_t unit = dwarf_unit_at(dwarf, vaddr);
	struct unit_map *map;

	out[0] = '\0';
	if (unit == MAP_NONE)
		return;
	map = dwarf_map_unit(dwarf, unit);
	assert_non_null(map);
	chain_of_map(map, vaddr, out);
	unit_map_destroy(map);
}

/* True when some address of the symbol has this chain. */
static inline bool has_chain(struct dwarf *dwarf, struct image *image, const char *symbol, const char *chain)
{
	uint64_t size = 0, at = libelf_symbol(image, symbol, &size);
	char found[CHAIN_MAX];

	assert_true(at && size);
	for (uint64_t here = at; here < at + size; here++) {
		chain_at(dwarf, here, found);
		if (strcmp(found, chain) == 0)
			return true;
	}
	for (uint64_t here = at; here < at + size; here++) {
		chain_at(dwarf, here, found);
		print_message("%#llx: %s\n", (unsigned long long)here, found);
	}
	return false;
}

#endif
