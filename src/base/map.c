/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>

#include "base/hash.h"

struct u64map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

void u64map_deinit(struct u64map *map)
{
	free(map->slots);
	*map = (struct u64map){0};
}

static struct u64map_slot *probe(struct u64map_slot *slots, size_t cap, uint64_t key)
{
	size_t i = hash_u64(HASH_SEED, key) & (cap - 1);

	while (slots[i].used && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

uint64_t *u64map_find(const struct u64map *map, uint64_t key)
{
	struct u64map_slot *slot;

	if (!map->cap)
		return NULL;
	slot = probe(map->slots, map->cap, key);
	return slot->used ? &slot->value : NULL;
}

/* A quarter stays free, so that no search is long. */
static bool has_room(size_t cap, size_t len)
{
	return len * 4 < cap * 3;
}

bool u64map_reserve(struct u64map *map, size_t len)
{
	struct u64map_slot *slots;
	size_t cap = map->cap ? map->cap : 64;

	while (!has_room(cap, len))
		cap *= 2;
	if (cap == map->cap)
		return true;
	slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < map->cap; i++)
		if (map->slots[i].used)
			*probe(slots, cap, map->slots[i].key) = map->slots[i];
	free(map->slots);
	map->slots = slots;
	map->cap = cap;
	return true;
}

uint64_t *u64map_put(struct u64map *map, uint64_t key, bool *created)
{
	struct u64map_slot *slot;

	if (!has_room(map->cap, map->len) && !u64map_reserve(map, map->len))
		return NULL;
	slot = probe(map->slots, map->cap, key);
	*created = !slot->used;
	if (!slot->used) {
		slot->used = true;
		slot->key = key;
		slot->value = 0;
		map->len++;
	}
	return &slot->value;
}
