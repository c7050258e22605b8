/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_SIGHTINGS_H
#define STAKEOUT_RUNTIME_PYTHON_SIGHTINGS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The code objects of the frames that a snapshot has, with what they were when they were first seen. A frame keeps its code
 * object alive, so one that is still the same when its names have been read was the same all the time in between, whichever
 * thread's frame it was seen in first. Nothing here allocates.
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

void python_sightings_init(struct python_sightings *sightings);

/* NULL: it was not seen. */
struct python_sighting *python_sightings_find(struct python_sightings *sightings, uint64_t code);

/* Of one that was not seen yet. When there is no room it is not noted. */
void python_sightings_add(struct python_sightings *sightings, const struct python_sighting *sighting);

#endif
