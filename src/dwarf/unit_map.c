/* SPDX-License-Identifier: MIT */
#include "dwarf/unit_map.h"

#include "base/sorted.h"

uint32_t unit_map_scope(const struct unit_map *map, uint64_t vaddr)
{
	size_t upto;

	if (vaddr < map->base || vaddr - map->base > UINT32_MAX)
		return MAP_NONE;
	upto = sorted_upto(map->pieces, map->npieces, .start, vaddr - map->base);
	return upto && map->pieces[upto - 1].scope < map->nscopes ? map->pieces[upto - 1].scope : MAP_NONE;
}

const struct map_row *unit_map_row(const struct unit_map *map, uint64_t vaddr)
{
	size_t upto;

	if (vaddr < map->base || vaddr - map->base > UINT32_MAX)
		return NULL;
	upto = sorted_upto(map->rows, map->nrows, .start, vaddr - map->base);
	return upto && map->rows[upto - 1].line ? &map->rows[upto - 1] : NULL;
}
