/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/mapping_sets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/sorted.h"
#include "offcpu/feed/slots.h"

enum { MAX_SETS = 1 << 16 };

struct set {
	uint32_t id;
	uint32_t taken; /* 0: it is among the idle */
	uint32_t first; /* its slots in BPF's array */
	struct mappings mappings;
};

struct mapping_sets {
	struct offcpu_probe *probe;
	struct objects *objects;
	room_fn make_room;
	void *arg;
	struct slots slots;
	uint32_t made;        /* sets so far */
	VEC(uint32_t) idle;   /* ids, the oldest first */
	VEC(uint64_t) hashes; /* hashes of the mappings, in the order of the sets, to find equal ones; 0: no set here */

	pthread_mutex_t lock;  /* guards what follows: the thread that takes and gives changes it, others look */
	VEC(struct set *) all; /* by the low half of their ids; NULL: none */
};

DEFINE_CLEANUP(mapping_sets, struct mapping_sets *, mapping_sets_destroy)

void mappings_deinit(struct mappings *mappings, struct objects *objects)
{
	for (size_t i = 0; i < mappings->len; i++)
		if (mappings->data[i].object != OFFCPU_NO_OBJECT)
			objects_give(objects, mappings->data[i].object);
	vec_deinit(mappings);
}

struct mapping_sets *mapping_sets_create(struct offcpu_probe *probe, struct objects *objects, uint32_t max,
					 room_fn make_room, void *arg)
{
	_cleanup_(cleanup_mapping_sets) struct mapping_sets *sets = calloc(1, sizeof(*sets));

	if (!sets)
		return NULL;
	pthread_mutex_init(&sets->lock, NULL);
	sets->probe = probe;
	sets->objects = objects;
	sets->make_room = make_room;
	sets->arg = arg;
	return slots_init(&sets->slots, max) ? steal_ptr(sets) : NULL;
}

void mapping_sets_destroy(struct mapping_sets *sets)
{
	if (!sets)
		return;
	for (size_t i = 0; i < sets->all.len; i++) {
		if (sets->all.data[i])
			vec_deinit(&sets->all.data[i]->mappings);
		free(sets->all.data[i]);
	}
	vec_deinit(&sets->all);
	vec_deinit(&sets->hashes);
	vec_deinit(&sets->idle);
	slots_deinit(&sets->slots);
	pthread_mutex_destroy(&sets->lock);
	free(sets);
}

static uint32_t index_of(uint32_t id)
{
	return id & (MAX_SETS - 1);
}

static struct set *find_set(const struct mapping_sets *sets, uint32_t id)
{
	struct set *set = index_of(id) < sets->all.len ? sets->all.data[index_of(id)] : NULL;

	return set && set->id == id ? set : NULL;
}

static void put_set(struct mapping_sets *sets, uint32_t index, struct set *set, uint64_t hash)
{
	sets->hashes.data[index] = hash;
	pthread_mutex_lock(&sets->lock);
	sets->all.data[index] = set;
	pthread_mutex_unlock(&sets->lock);
}

static uint32_t slots_of(const struct mappings *mappings)
{
	return mappings->len ? (uint32_t)mappings->len : 1;
}

/* A walk that still uses the set finds its mappings unknown. The objects go only after that: see remove_table(). */
static void drop_set(struct mapping_sets *sets, struct set *set)
{
	static const struct offcpu_mapping none;

	for (uint32_t i = 0; i < set->mappings.len; i++)
		offcpu_probe_set_mapping(sets->probe, set->first + i, &none);
	put_set(sets, index_of(set->id), NULL, 0);
	slots_give(&sets->slots, set->first, slots_of(&set->mappings));
	mappings_deinit(&set->mappings, sets->objects);
	free(set);
}

bool mapping_sets_drop_oldest(struct mapping_sets *sets)
{
	struct set *set;

	if (!sets->idle.len)
		return false;
	set = find_set(sets, sets->idle.data[0]);
	sets->idle.len--;
	memmove(sets->idle.data, sets->idle.data + 1, sets->idle.len * sizeof(*sets->idle.data));
	drop_set(sets, set);
	return true;
}

static bool take_slots(struct mapping_sets *sets, uint32_t count, uint32_t *first)
{
	while (!slots_take(&sets->slots, count, first))
		if (!sets->make_room(sets->arg))
			return false;
	return true;
}

/* Finds a free place among the sets. */
static bool take_index(struct mapping_sets *sets, uint32_t *index)
{
	for (;;) {
		for (*index = 0; *index < sets->hashes.len; ++*index)
			if (!sets->hashes.data[*index])
				return true;
		if (*index < MAX_SETS)
			break;
		if (!sets->make_room(sets->arg))
			return false;
	}
	if (!vec_reserve(&sets->hashes, *index + 1))
		return false;
	pthread_mutex_lock(&sets->lock);
	if (vec_push(&sets->all, NULL))
		sets->hashes.data[sets->hashes.len++] = 0;
	pthread_mutex_unlock(&sets->lock);
	return *index < sets->hashes.len;
}

static int set_mapping(struct mapping_sets *sets, const struct set *set, uint32_t i)
{
	const struct mapping *m = &set->mappings.data[i];
	struct object_table table = {0};
	struct offcpu_mapping record = {
		.start = m->start, .end = m->end, .object = OFFCPU_NO_OBJECT, .bias = m->bias, .set = set->id};

	if (m->object != OFFCPU_NO_OBJECT)
		table = objects_table(sets->objects, m->object);
	if (table.nrows) {
		record.object = m->object;
		record.bias += table.base;
		record.nrows = table.nrows;
		record.serial = table.serial;
	}
	return offcpu_probe_set_mapping(sets->probe, set->first + i, &record);
}

/* There are up to `max` of them, and half of a vector may be empty. */
static void shrink(struct mappings *mappings)
{
	struct mapping *data = realloc(mappings->data, mappings->len * sizeof(*data) + 1);

	if (data)
		mappings->data = data;
	mappings->cap = mappings->len;
}

/* Takes the mappings over when it succeeds. */
static struct set *create_set(struct mapping_sets *sets, struct mappings *mappings, uint64_t hash)
{
	struct set *set = calloc(1, sizeof(*set));
	uint32_t index;

	if (!set || !take_slots(sets, slots_of(mappings), &set->first)) {
		free(set);
		return NULL;
	}
	if (!take_index(sets, &index)) {
		slots_give(&sets->slots, set->first, slots_of(mappings));
		free(set);
		return NULL;
	}
	/* The high half tells it from earlier sets in the same place; its highest bit is for sets that BPF makes. */
	set->id = (1 + sets->made++ % INT16_MAX) * MAX_SETS | index;
	set->mappings = *mappings;
	*mappings = (struct mappings){0};
	shrink(&set->mappings);
	put_set(sets, index, set, hash);
	return set;
}

static bool is_same(const struct mappings *a, const struct mappings *b)
{
	/* No hidden padding: see the assertion at struct mapping. */
	return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len * sizeof(*a->data)) == 0);
}

static struct set *find_same(const struct mapping_sets *sets, const struct mappings *mappings, uint64_t hash)
{
	for (size_t i = 0; i < sets->hashes.len; i++)
		if (sets->hashes.data[i] == hash && is_same(&sets->all.data[i]->mappings, mappings))
			return sets->all.data[i];
	return NULL;
}

static void wake(struct mapping_sets *sets, const struct set *set)
{
	size_t i = 0;

	while (sets->idle.data[i] != set->id)
		i++;
	sets->idle.len--;
	memmove(&sets->idle.data[i], &sets->idle.data[i + 1], (sets->idle.len - i) * sizeof(*sets->idle.data));
}

uint32_t mapping_sets_take(struct mapping_sets *sets, struct mappings *mappings, bool *created)
{
	uint64_t hash = hash_bytes(HASH_SEED, mappings->data, mappings->len * sizeof(*mappings->data)) | 1;
	struct set *set = find_same(sets, mappings, hash);
	int rc = 0;

	*created = !set;
	if (set && !set->taken++)
		wake(sets, set);
	/* Reserves the room that becoming idle needs, so that it cannot fail later. */
	if (!set && vec_reserve(&sets->idle, sets->all.len + 1))
		set = create_set(sets, mappings, hash);
	mappings_deinit(mappings, sets->objects); /* what is left */
	if (!set || !*created)
		return set ? set->id : 0;
	set->taken = 1;
	for (uint32_t i = 0; rc == 0 && i < set->mappings.len; i++)
		rc = set_mapping(sets, set, i);
	if (rc == 0)
		return set->id;
	drop_set(sets, set);
	return 0;
}

void mapping_sets_give(struct mapping_sets *sets, uint32_t id)
{
	struct set *set = find_set(sets, id);

	if (--set->taken == 0)
		vec_push(&sets->idle, id);
}

struct offcpu_maps mapping_sets_maps(const struct mapping_sets *sets, uint32_t id)
{
	const struct set *set = find_set(sets, id);

	return (struct offcpu_maps){.first = set->first, .count = (uint32_t)set->mappings.len, .set = id};
}

static const struct mapping *find_mapping(const struct mappings *mappings, uint64_t address)
{
	size_t upto = sorted_upto(mappings->data, mappings->len, .start, address);

	return upto && address < mappings->data[upto - 1].end ? &mappings->data[upto - 1] : NULL;
}

bool mapping_sets_find(struct mapping_sets *sets, uint32_t id, uint64_t address, struct mapping *out)
{
	const struct mapping *found = NULL;
	const struct set *set;

	pthread_mutex_lock(&sets->lock);
	set = find_set(sets, id);
	if (set)
		found = find_mapping(&set->mappings, address);
	if (found) {
		*out = *found;
		if (found->object != OFFCPU_NO_OBJECT)
			objects_keep(sets->objects, found->object); /* while the set has it */
	}
	pthread_mutex_unlock(&sets->lock);
	return found;
}
