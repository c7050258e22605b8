/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_HASH_H
#define STAKEOUT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a; `seed` is the hash so far, or HASH_SEED. Not for keys an attacker can choose to collide. */
#define HASH_SEED UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		seed = (seed ^ p[i]) * UINT64_C(0x100000001b3);
	return seed;
}

static inline uint64_t hash_u64(uint64_t seed, uint64_t value)
{
	value = (value ^ (value >> 31)) * UINT64_C(0x7fb5d329728ea185);
	value = (value ^ (value >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
	return (seed ^ value ^ (value >> 33)) * UINT64_C(0x100000001b3);
}

#endif
