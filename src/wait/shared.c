/* SPDX-License-Identifier: MIT */
#include "wait/shared.h"

#include <string.h>

#include "wait/stillness.h"

const struct map_entry *wait_shared_map(const struct snapshot *snap, uint64_t address)
{
	const struct map_entry *map = maps_find(&snap->maps, address);

	return map && map->inode && map->perms & MAP_PERM_SHARED ? map : NULL;
}

/* Segments of System V have small numbers for inodes, in each namespace the same. */
static bool is_system_v(const struct map_entry *map)
{
	return strncmp(map->path, "/SYSV", 5) == 0;
}

/* Whether the other process has the same byte of the same object mapped. */
static bool has_mapped(const struct snapshot *other, const struct snapshot *snap, const struct map_entry *map, uint64_t address)
{
	const uint64_t offset = address - map->start + map->offset;

	if (is_system_v(map) && (!snap->ipc_ns || snap->ipc_ns != other->ipc_ns))
		return false;
	for (size_t i = 0; i < other->maps.len; i++) {
		const struct map_entry *m = &other->maps.data[i];

		if (m->inode == map->inode && m->dev_major == map->dev_major && m->dev_minor == map->dev_minor && m->perms & MAP_PERM_SHARED &&
		    is_system_v(m) == is_system_v(map) && offset >= m->offset && offset - m->offset < m->end - m->start)
			return true;
	}
	return false;
}

/* Where a number means the same thread. */
static bool have_same_numbers(const struct snapshot *a, const struct snapshot *b)
{
	if (!a->inner_pid && !b->inner_pid)
		return true; /* that of /proc */
	return a->inner_pid && b->inner_pid && a->pid_ns && a->pid_ns == b->pid_ns;
}

static const struct trace_thread *find_numbered(const struct trace *trace, uint32_t number)
{
	for (size_t i = 0; i < trace->threads.len; i++)
		if (wait_number_of(trace->snap, trace->threads.data[i].thread) == number)
			return &trace->threads.data[i];
	return NULL;
}

static bool is_certain(const struct trace_thread *t, const struct trace_thread *owner)
{
	const int64_t instant = t->snap->capture.instant_ns;

	return t->wait.evident && instant && instant == owner->snap->capture.instant_ns && !t->snap->has_doubtful_numbers &&
	       stillness_of_capture(t->thread, owner->thread);
}

static void find_owner(struct trace_thread *t, const struct trace *other, const struct map_entry *map, uint64_t address)
{
	const struct trace_thread *owner = NULL;

	if (other->snap != t->snap && have_same_numbers(t->snap, other->snap) && has_mapped(other->snap, t->snap, map, address))
		owner = find_numbered(other, (uint32_t)t->wait.owner);
	if (!owner)
		return;
	t->wait.owner = owner->thread->tid;
	t->wait.owner_pid = owner->snap->pid;
	t->wait.owner_comm = NULL;
	t->wait.certain = is_certain(t, owner);
}

void waits_find_shared(struct trace *const *traces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; n > 1 && k < traces[i]->threads.len; k++) {
			struct trace_thread *t = &traces[i]->threads.data[k];
			const uint64_t address = t->wait.address ? t->wait.address : t->wait.word;
			const struct map_entry *map = t->wait.holder == HOLDER_THREAD ? wait_shared_map(t->snap, address) : NULL;

			for (size_t other = 0; map && other < n && (!t->wait.owner_pid || t->wait.owner_comm); other++)
				find_owner(t, traces[other], map, address);
		}
}
