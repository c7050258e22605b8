/* SPDX-License-Identifier: MIT */
#include "dwarf/unit_map.h"

uint32_t unit_map_scope(const struct unit_map *map, uint64_t vaddr)
{
	size_t low = 0, high = map->npieces;

	if (vaddr < map->base || vaddr - map->base > UINT32_MAX)
		return MAP_NONE;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (map->pieces[mid].start <= vaddr - map->base)
			low = mid + 1;
		else
			high = mid;
	}
	return low && map->pieces[low - 1].scope < map->nscopes ? map->pieces[low - 1].scope : MAP_NONE;
}

const struct map_row *unit_map_row(const struct unit_map *map, uint64_t vaddr)
{
	size_t low = 0, high = map->nrows;

	if (vaddr < map->base || vaddr - map->base > UINT32_MAX)
		return NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (map->rows[mid].start <= vaddr - map->base)
			low = mid + 1;
		else
			high = mid;
	}
	return low && map->rows[low - 1].line ? &map->rows[low - 1] : NULL;
}
