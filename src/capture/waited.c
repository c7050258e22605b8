/* SPDX-License-Identifier: MIT */
#include "capture/waited.h"

struct mem_copy waited_memory(const struct maps *maps, const struct arch *arch, const struct snap_syscall *syscall)
{
	const bool is_futex = syscall->state == SYSCALL_IN && arch_is_futex(arch, syscall->nr);
	const struct map_entry *map = is_futex ? maps_find(maps, syscall->args[0]) : NULL;
	struct mem_copy copy = {0};

	if (!map)
		return copy;
	copy.start = syscall->args[0];
	copy.len = map->end - copy.start < WAITED_BYTES ? map->end - copy.start : WAITED_BYTES;
	copy.region_end = copy.start + copy.len;
	return copy;
}
