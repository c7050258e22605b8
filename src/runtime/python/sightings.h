/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_SIGHTINGS_H
#define STAKEOUT_RUNTIME_PYTHON_SIGHTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mem.h"
#include "runtime/python/chain.h"
#include "runtime/python/layout.h"

/*
 * The code objects of the frames that a snapshot has, with what they were when they were first seen. Code objects do not
 * change, but other ones may get their addresses before they are read. A frame keeps its code object alive, so one that is
 * still the same when its names have been read was the same all the time in between, whichever thread's frame it was seen
 * in first. Only python_sightings_create() allocates.
 */
enum { PYTHON_MAX_SIGHTINGS = 8192 };

struct python_sighting {
	uint64_t code;
	uint32_t version; /* python_code_version() */
	bool foreseen;    /* it was looked at before any frame of the snapshot was read */
	bool gone;        /* another was there, or nothing, by the time that it was read */
};

struct python_sightings {
	struct python_sighting data[PYTHON_MAX_SIGHTINGS];
	uint32_t len;
	uint32_t slots[PYTHON_MAX_SIGHTINGS * 2]; /* by address: position in data, or PYTHON_MAX_SIGHTINGS */
};

/* NULL when memory is exhausted. For free(). */
struct python_sightings *python_sightings_create(void);

/* Of one that was not seen yet. When there is no room it is not noted. */
void python_sightings_add(struct python_sightings *sightings, const struct python_sighting *sighting);

/*
 * Looks at the code objects of a thread that is likely to be held soon: what is noted now need not be noted then. It runs on
 * meanwhile, so that only what is a code object counts.
 */
void python_sightings_foresee(struct python_sightings *sightings, const struct python_layout *layout, struct mem *mem,
			      const struct python_chain *chain);

/* Of a thread that does not run. Those that were foreseen may be others by now: the innermost are looked at again. */
void python_sightings_note(struct python_sightings *sightings, const struct python_layout *layout, struct mem *mem,
			   const struct python_chain *chain);

/*
 * Tells each frame the version of its code object; 0 where there was no room to note it. False: what a frame had was no code
 * object.
 */
bool python_sightings_tell(const struct python_sightings *sightings, struct python_chain *chain);

#endif
