/* SPDX-License-Identifier: MIT */
#include "model/maps.h"

const struct map_entry *maps_find(const struct maps *maps, uint64_t address)
{
	size_t lo = 0, hi = maps->len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct map_entry *e = &maps->data[mid];

		if (address < e->start)
			hi = mid;
		else if (address >= e->end)
			lo = mid + 1;
		else
			return e;
	}
	return NULL;
}
