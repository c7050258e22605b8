/* SPDX-License-Identifier: MIT */
#include "target/pointers.h"

#include <string.h>

static bool may_be(const struct snapshot *snap, const struct snap_thread *t, const struct pointed *what, uint64_t address)
{
	const struct map_entry *map = address % what->alignment ? NULL : maps_find(&snap->maps, address);

	return map && map->perms & MAP_PERM_WRITE && map->end - address >= what->bytes &&
	       (!what->anonymous || (!map->inode && (address < t->stack.start || address >= t->stack.region_end)));
}

size_t pointers_of(const struct snapshot *snap, const struct snap_thread *t, const struct pointed *what, uint64_t *out, size_t max)
{
	const size_t nregs = sizeof(t->regs.v) / sizeof(t->regs.v[0]);
	const uint64_t first = -t->stack.start % 8, bytes = t->stack.len < what->scanned ? t->stack.len : what->scanned;
	size_t n = 0;

	for (size_t i = 0; n < max && (i < nregs || first + (i - nregs + 1) * 8 <= bytes); i++) {
		uint64_t address = 0;
		size_t k = 0;

		if (i < nregs)
			address = t->regs.valid >> i & 1 ? t->regs.v[i] : 0;
		else
			memcpy(&address, t->stack.data + first + (i - nregs) * 8, sizeof(address));
		if (!address || !may_be(snap, t, what, address))
			continue;
		while (k < n && out[k] != address)
			k++;
		out[k] = address;
		n += k == n;
	}
	return n;
}
