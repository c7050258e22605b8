/* SPDX-License-Identifier: MIT */
#include "runtime/python/sightings.h"

#include "base/hash.h"

enum { NONE = PYTHON_MAX_SIGHTINGS, SLOTS = PYTHON_MAX_SIGHTINGS * 2 };

/* It also touches the pages, which are to be there while threads are held. */
void python_sightings_init(struct python_sightings *sightings)
{
	sightings->len = 0;
	for (uint32_t i = 0; i < SLOTS; i++)
		sightings->slots[i] = NONE;
}

/* Where the code object is, or where it would be. Half of the slots are always free. */
static uint32_t find_slot(const struct python_sightings *sightings, uint64_t code)
{
	uint32_t at = (uint32_t)(hash_u64(HASH_SEED, code) % SLOTS);

	while (sightings->slots[at] != NONE && sightings->data[sightings->slots[at]].code != code)
		at = (at + 1) % SLOTS;
	return at;
}

struct python_sighting *python_sightings_find(struct python_sightings *sightings, uint64_t code)
{
	uint32_t at = sightings->slots[find_slot(sightings, code)];

	return at == NONE ? NULL : &sightings->data[at];
}

void python_sightings_add(struct python_sightings *sightings, const struct python_sighting *sighting)
{
	uint32_t slot = find_slot(sightings, sighting->code);

	if (sightings->len == PYTHON_MAX_SIGHTINGS || sightings->slots[slot] != NONE)
		return;
	sightings->slots[slot] = sightings->len;
	sightings->data[sightings->len++] = *sighting;
}
