/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_MAP_H
#define STAKEOUT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A hash map from 64-bit keys to 64-bit values (indices or pointers); open addressing, grows, no removal. */
struct u64map {
	struct u64map_slot *slots;
	size_t len;
	size_t cap; /* 0 or a power of two */
};

void u64map_deinit(struct u64map *map);

/* Makes room for `len` keys at once, where that many are to come. False when memory is exhausted. */
bool u64map_reserve(struct u64map *map, size_t len);

/* The address of the value, or NULL. Valid until the next insertion. */
uint64_t *u64map_find(const struct u64map *map, uint64_t key);

/* Finds or inserts (value 0); *created tells which. NULL when memory is exhausted. */
uint64_t *u64map_put(struct u64map *map, uint64_t key, bool *created);

#endif
