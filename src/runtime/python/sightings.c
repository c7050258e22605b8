/* SPDX-License-Identifier: MIT */
#include "runtime/python/sightings.h"

#include <stdlib.h>

#include "base/hash.h"
#include "runtime/python/code.h"

enum {
	NONE = PYTHON_MAX_SIGHTINGS,
	SLOTS = PYTHON_MAX_SIGHTINGS * 2,
	INNERMOST = 6, /* frames whose code objects are likely to be short-lived */
};

/* It also touches the pages, which are to be there while threads are held. */
struct python_sightings *python_sightings_create(void)
{
	struct python_sightings *sightings = malloc(sizeof(*sightings));

	if (!sightings)
		return NULL;
	*sightings = (struct python_sightings){0};
	for (uint32_t i = 0; i < SLOTS; i++)
		sightings->slots[i] = NONE;
	return sightings;
}

/* Where the code object is, or where it would be. Half of the slots are always free. */
static uint32_t find_slot(const struct python_sightings *sightings, uint64_t code)
{
	uint32_t at = (uint32_t)(hash_u64(HASH_SEED, code) % SLOTS);

	while (sightings->slots[at] != NONE && sightings->data[sightings->slots[at]].code != code)
		at = (at + 1) % SLOTS;
	return at;
}

/* Its position; NONE: it was not seen. */
static uint32_t find(const struct python_sightings *sightings, uint64_t code)
{
	return sightings->slots[find_slot(sightings, code)];
}

void python_sightings_add(struct python_sightings *sightings, const struct python_sighting *sighting)
{
	uint32_t slot = find_slot(sightings, sighting->code);

	if (sightings->len == PYTHON_MAX_SIGHTINGS || sightings->slots[slot] != NONE)
		return;
	sightings->slots[slot] = sightings->len;
	sightings->data[sightings->len++] = *sighting;
}

void python_sightings_foresee(struct python_sightings *sightings, const struct python_layout *layout, struct mem *mem,
			      const struct python_chain *chain)
{
	for (size_t i = 0; i < chain->len; i++) {
		struct python_sighting seen = {.code = chain->frames[i].code, .foreseen = true};

		if (find(sightings, seen.code) != NONE)
			continue;
		seen.version = python_code_version(layout, mem, seen.code);
		if (seen.version)
			python_sightings_add(sightings, &seen);
	}
}

void python_sightings_note(struct python_sightings *sightings, const struct python_layout *layout, struct mem *mem,
			   const struct python_chain *chain)
{
	for (size_t i = 0; i < chain->len; i++) {
		struct python_sighting now = {.code = chain->frames[i].code};
		uint32_t at = find(sightings, now.code);
		struct python_sighting *seen = at == NONE ? NULL : &sightings->data[at];

		if (!seen || (seen->foreseen && i < INNERMOST))
			now.version = python_code_version(layout, mem, now.code);
		else
			now.version = seen->version;
		if (seen)
			*seen = now;
		else
			python_sightings_add(sightings, &now);
	}
}

bool python_sightings_tell(const struct python_sightings *sightings, struct python_chain *chain)
{
	for (size_t i = 0; i < chain->len; i++) {
		uint32_t at = find(sightings, chain->frames[i].code);

		if (at != NONE && !sightings->data[at].version)
			return false;
		chain->frames[i].version = at == NONE ? 0 : sightings->data[at].version;
	}
	return true;
}
