/* SPDX-License-Identifier: MIT */
#include "capture/waited.h"

#include <string.h>

/* What an argument leads to: times are mostly in the stack, which is copied anyway, but not all. */
static const struct {
	const char *name;
	uint8_t arg;
	uint8_t bytes;
} pointed[] = {
	{"nanosleep", 0, 16},
	{"clock_nanosleep", 2, 16},
	{"clock_nanosleep_time64", 2, 16},
	{"restart_syscall", 0, WAITED_BYTES}, /* which may go on with waiting for a futex */
	{"rt_sigtimedwait", 0, 8}, /* the signals */
	{"rt_sigtimedwait_time64", 0, 8},
	{"semop", 1, 6}, /* the first operation */
	{"semtimedop", 1, 6},
	{"semtimedop_time64", 1, 6},
};

/* Which argument, and how many bytes; 0: none. */
static uint8_t pointed_bytes(const struct arch *arch, const struct snap_syscall *syscall, uint8_t *arg)
{
	const struct syscall_info *call = arch_syscall(arch, syscall->nr);

	for (size_t i = 0; call && i < sizeof(pointed) / sizeof(pointed[0]); i++)
		if (strcmp(call->name, pointed[i].name) == 0) {
			*arg = pointed[i].arg;
			return pointed[i].bytes;
		}
	return 0;
}

struct mem_copy waited_memory(const struct maps *maps, const struct arch *arch, const struct snap_syscall *syscall)
{
	const struct map_entry *map;
	struct mem_copy copy = {0};
	uint8_t arg = 0, bytes;

	if (syscall->state != SYSCALL_IN)
		return copy;
	bytes = arch_is_futex(arch, syscall->nr) ? WAITED_BYTES : pointed_bytes(arch, syscall, &arg);
	map = bytes ? maps_find(maps, syscall->args[arg]) : NULL;
	if (!map)
		return copy;
	copy.start = syscall->args[arg];
	copy.len = map->end - copy.start < bytes ? map->end - copy.start : bytes;
	copy.region_end = copy.start + copy.len;
	return copy;
}

bool waited_is_copied(const struct mem_copy *waited, const struct mem_copy *stack)
{
	return waited->start >= stack->start && waited->len <= stack->len && waited->start - stack->start <= stack->len - waited->len;
}
