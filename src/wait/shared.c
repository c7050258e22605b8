/* SPDX-License-Identifier: MIT */
#include "wait/shared.h"

#include <stdlib.h>
#include <string.h>

#include "wait/stillness.h"
#include "wait/threads.h"

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

/* A part of an object that a process shares: they are sorted by object, and by where in it they begin. */
struct shared_part {
	const struct map_entry *map;
	uint64_t end;	/* in the object */
	uint64_t reach; /* the furthest end of this and of all before it in the object: parts may overlap */
};

/* A process whose threads others may wait for. What is needed to find them is made once that is asked for. */
struct party {
	const struct trace *trace;
	struct wait_threads threads;
	VEC(struct shared_part) parts;
	bool was_asked, is_indexed; /* only the first if memory is exhausted */
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_objects(const struct map_entry *a, const struct map_entry *b)
{
	int order = compare_numbers(a->inode, b->inode);

	if (!order)
		order = compare_numbers(a->dev_major, b->dev_major);
	if (!order)
		order = compare_numbers(a->dev_minor, b->dev_minor);
	return order ? order : is_system_v(a) - is_system_v(b);
}

static int compare_parts(const void *a, const void *b)
{
	const struct shared_part *x = a, *y = b;
	const int order = compare_objects(x->map, y->map);

	return order ? order : compare_numbers(x->map->offset, y->map->offset);
}

/* False when memory is exhausted. */
static bool index_maps(struct party *party)
{
	const struct maps *maps = &party->trace->snap->maps;

	for (size_t i = 0; i < maps->len; i++) {
		const struct map_entry *map = &maps->data[i];

		if (map->inode && map->perms & MAP_PERM_SHARED &&
		    !vec_push(&party->parts, (struct shared_part){.map = map, .end = map->offset + (map->end - map->start)}))
			return false;
	}
	if (party->parts.len)
		qsort(party->parts.data, party->parts.len, sizeof(party->parts.data[0]), compare_parts);
	for (size_t i = 0; i < party->parts.len; i++) {
		struct shared_part *part = &party->parts.data[i], *before = i ? part - 1 : NULL;

		part->reach = before && compare_objects(before->map, part->map) == 0 && before->reach > part->end ? before->reach : part->end;
	}
	return true;
}

static bool index_party(struct party *party)
{
	if (!party->was_asked)
		party->is_indexed = wait_threads_init(&party->threads, party->trace->snap) && index_maps(party);
	party->was_asked = true;
	return party->is_indexed;
}

static void deinit_party(struct party *party)
{
	wait_threads_deinit(&party->threads);
	vec_deinit(&party->parts);
}

/* Whether the other process has the same byte of the same object mapped. */
static bool has_mapped(const struct party *other, const struct snapshot *snap, const struct map_entry *map, uint64_t address)
{
	const struct map_entry wanted = {
		.inode = map->inode, .dev_major = map->dev_major, .dev_minor = map->dev_minor, .path = map->path, .offset = address - map->start + map->offset};
	const struct shared_part key = {.map = &wanted};
	size_t low = 0, high = other->parts.len;

	if (is_system_v(map) && (!snap->ipc_ns || snap->ipc_ns != other->trace->snap->ipc_ns))
		return false;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (compare_parts(&other->parts.data[mid], &key) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low && compare_objects(other->parts.data[low - 1].map, &wanted) == 0 && wanted.offset < other->parts.data[low - 1].reach;
}

/* Where a number means the same thread. */
static bool have_same_numbers(const struct snapshot *a, const struct snapshot *b)
{
	if (!a->inner_pid && !b->inner_pid)
		return true; /* that of /proc */
	return a->inner_pid && b->inner_pid && a->pid_ns && a->pid_ns == b->pid_ns;
}

/* If the number is this thread's. */
static bool is_certain(const struct trace_thread *t, const struct snapshot *owners, const struct snap_thread *owner)
{
	const int64_t instant = t->snap->capture.instant_ns;

	return t->wait.evident && instant && instant == owners->capture.instant_ns && stillness_of_capture(t->thread, owner);
}

static void set_owner(struct trace_thread *t, const struct snapshot *owners, const struct snap_thread *owner, bool doubtful)
{
	t->wait.owner = owner->tid;
	t->wait.owner_pid = owners->pid;
	t->wait.owner_comm = NULL;
	t->wait.certain = !doubtful && is_certain(t, owners, owner);
}

/* Of a lock in memory that both have mapped. */
static bool find_sharer(struct trace_thread *t, struct party *other, const struct map_entry *map, uint64_t address)
{
	const struct snap_thread *owner;

	if (other->trace->snap == t->snap || !have_same_numbers(t->snap, other->trace->snap) || !index_party(other))
		return false;
	owner = wait_thread_numbered(&other->threads, (uint32_t)t->wait.owner);
	if (!owner || !has_mapped(other, t->snap, map, address))
		return false;
	set_owner(t, other->trace->snap, owner, t->snap->has_doubtful_numbers);
	return true;
}

/* Of one in memory that nobody has but the two processes, after vfork(): the owner was found before (target/outsiders.h). */
static bool find_with_same_memory(struct trace_thread *t, struct party *other)
{
	const struct snap_thread *owner = NULL;

	if (other->trace->snap->pid == t->wait.owner_pid && index_party(other))
		owner = wait_thread_with_tid(&other->threads, t->wait.owner);
	if (owner)
		set_owner(t, other->trace->snap, owner, false);
	return owner;
}

/* Not among the threads that were looked at with it. */
static bool has_owner_elsewhere(const struct trace_thread *t)
{
	const struct wait *w = &t->wait;

	return w->holder == HOLDER_THREAD && (!w->owner_pid || (w->owner_comm && w->owner_pid != t->snap->pid));
}

static void find_owner(struct trace_thread *t, struct party *parties, size_t n)
{
	const uint64_t address = t->wait.address ? t->wait.address : t->wait.word;
	const struct map_entry *map = wait_shared_map(t->snap, address);

	for (size_t i = 0; i < n; i++)
		if (map ? find_sharer(t, &parties[i], map, address) : find_with_same_memory(t, &parties[i]))
			return;
}

void waits_find_shared(struct trace *const *traces, size_t n)
{
	struct party *parties = n > 1 ? calloc(n, sizeof(*parties)) : NULL;

	if (!parties)
		return;
	for (size_t i = 0; i < n; i++)
		parties[i].trace = traces[i];
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++)
			if (has_owner_elsewhere(&traces[i]->threads.data[k]))
				find_owner(&traces[i]->threads.data[k], parties, n);
	for (size_t i = 0; i < n; i++)
		deinit_party(&parties[i]);
	free(parties);
}
