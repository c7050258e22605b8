/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/found_sets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

enum {
	MAX_SETS = 1 << 15, /* a power of two */
	MAX_MAPPINGS = 2 * OFFCPU_FOUND_SLOTS,
};

struct found_set {
	uint32_t id;              /* 0: none here */
	uint32_t first, count;    /* its slots in BPF's array */
	struct mappings mappings; /* less than BPF's, where an object is gone */
};

struct found_sets {
	struct offcpu_probe *probe;
	struct objects *objects;
	uint32_t order[MAX_SETS]; /* their ids, the oldest from `first` on, in a circle; some have been dropped since */
	size_t first, len;
	size_t nmappings;

	pthread_mutex_t lock;           /* guards what follows: the thread that adds and drops changes it, others look */
	struct found_set all[MAX_SETS]; /* BPF numbers them in turn, so the low bits are their places */
};

struct found_sets *found_sets_create(struct offcpu_probe *probe, struct objects *objects)
{
	struct found_sets *sets = calloc(1, sizeof(*sets));

	if (!sets)
		return NULL;
	pthread_mutex_init(&sets->lock, NULL);
	sets->probe = probe;
	sets->objects = objects;
	return sets;
}

void found_sets_destroy(struct found_sets *sets)
{
	if (!sets)
		return;
	for (size_t i = 0; i < MAX_SETS; i++)
		vec_deinit(&sets->all[i].mappings);
	pthread_mutex_destroy(&sets->lock);
	free(sets);
}

static struct found_set *place_of(struct found_sets *sets, uint32_t id)
{
	return &sets->all[id & (MAX_SETS - 1)];
}

static void put(struct found_sets *sets, struct found_set set, struct found_set *place)
{
	struct found_set before;

	pthread_mutex_lock(&sets->lock);
	before = *place;
	*place = set;
	pthread_mutex_unlock(&sets->lock);
	sets->nmappings += set.mappings.len;
	sets->nmappings -= before.mappings.len;
	mappings_deinit(&before.mappings, sets->objects);
}

/* The place of the oldest, which is not among the others any more; NULL: there are none. */
static struct found_set *take_oldest(struct found_sets *sets)
{
	while (sets->len) {
		uint32_t id = sets->order[sets->first];
		struct found_set *place = place_of(sets, id);

		sets->first = (sets->first + 1) % MAX_SETS;
		sets->len--;
		if (place->id == id)
			return place;
	}
	return NULL;
}

static void drop(struct found_sets *sets, struct found_set *place)
{
	if (place)
		put(sets, (struct found_set){0}, place);
}

/* Stacks that are walked with a set that is not here any more have no names, however many of its files are known. */
bool found_sets_drop_oldest(struct found_sets *sets)
{
	struct found_set *oldest = take_oldest(sets);

	for (uint32_t i = 0; oldest && i < oldest->count; i++)
		offcpu_probe_forget_mapping(sets->probe, oldest->first + i, oldest->id);
	drop(sets, oldest);
	return oldest;
}

/* A mapping as it is known here. False: its file is not any more. */
static bool take_mapping(struct found_sets *sets, const struct offcpu_mapping *found, struct mapping *out)
{
	if (!objects_take_found(sets->objects, found->object, found->serial))
		return false;
	*out = (struct mapping){
		.start = found->start,
		.end = found->end,
		.bias = found->bias - objects_table(sets->objects, found->object).base,
		.object = found->object,
	};
	return true;
}

static bool take_mappings(struct found_sets *sets, const uint8_t *found, uint32_t count, struct mappings *out)
{
	if (count && !vec_reserve(out, count))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct offcpu_mapping from;
		struct mapping mapping;

		memcpy(&from, found + i * sizeof(from), sizeof(from));
		if (take_mapping(sets, &from, &mapping))
			vec_push(out, mapping);
	}
	return true;
}

bool found_sets_add(struct found_sets *sets, const void *record, size_t len)
{
	struct found_set set = {0};
	struct offcpu_found head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, record, sizeof(head));
	if (!(head.set & OFFCPU_FOUND_SET) || head.count > OFFCPU_FOUND_MAPPINGS ||
	    len < sizeof(head) + head.count * sizeof(struct offcpu_mapping))
		return false;
	while (sets->len == MAX_SETS || (sets->len && sets->nmappings + head.count > MAX_MAPPINGS))
		drop(sets, take_oldest(sets)); /* BPF has given its slots to others long ago */
	set = (struct found_set){.id = head.set, .first = head.first, .count = head.count};
	if (!take_mappings(sets, (const uint8_t *)record + sizeof(head), head.count, &set.mappings))
		return false;
	put(sets, set, place_of(sets, head.set));
	sets->order[(sets->first + sets->len++) % MAX_SETS] = head.set;
	return true;
}

static const struct mapping *find_mapping(const struct mappings *mappings, uint64_t address)
{
	size_t upto = sorted_upto(mappings->data, mappings->len, .start, address);

	return upto && address < mappings->data[upto - 1].end ? &mappings->data[upto - 1] : NULL;
}

bool found_sets_find(struct found_sets *sets, uint32_t id, uint64_t address, struct mapping *out)
{
	const struct found_set *set = place_of(sets, id);
	const struct mapping *found = NULL;

	pthread_mutex_lock(&sets->lock);
	if (set->id == id)
		found = find_mapping(&set->mappings, address);
	if (found) {
		*out = *found;
		objects_keep(sets->objects, found->object); /* while the set has it */
	}
	pthread_mutex_unlock(&sets->lock);
	return found;
}
