/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_HASH_H
#define STAKEOUT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * `seed` is the hash so far, or HASH_SEED. Not for keys that an attacker can choose to collide. Values differ between
 * machines.
 */
#define HASH_SEED UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_u64(uint64_t seed, uint64_t value)
{
	value = (value ^ (value >> 31)) * UINT64_C(0x7fb5d329728ea185);
	value = (value ^ (value >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
	return (seed ^ value ^ (value >> 33)) * UINT64_C(0x100000001b3);
}

/* Eight bytes at a time: mangled names are long. */
static inline uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t word = len;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		seed = hash_u64(seed, word);
		__builtin_memcpy(&word, p, sizeof(word));
	}
	seed = hash_u64(seed, word);
	word = 0;
	for (size_t i = 0; i < len; i++)
		word = word << 8 | p[i];
	return hash_u64(seed, word);
}

#endif
