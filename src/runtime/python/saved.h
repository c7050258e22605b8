/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_SAVED_H
#define STAKEOUT_RUNTIME_PYTHON_SAVED_H

#include "model/snapshot.h"
#include "runtime/python/layout.h"
#include "runtime/python/sightings.h"
#include "runtime/python/tasks.h"
#include "runtime/python/threads.h"

/* What a snapshot keeps of a Python besides its memory, as facts of the runtime. */

/* An activation of the interpreter: what it has on the C stack, and the pc of its native frame. */
struct python_activation {
	uint64_t anchor;
	uint64_t pc;
};

struct python_activations {
	VEC_FIELDS(struct python_activation);
};

struct python_saved {
	struct python_layout *layout; /* its first words say how many there are of the others */
	struct python_threads *threads;
	struct python_sightings *sightings;
	struct python_activations *activations;
	struct python_task_list *tasks;
};

/* False when memory is exhausted. */
bool python_saved_keep(const struct python_saved *from, struct snapshot *snap, struct snap_runtime *runtime);

/* Appends to what is there. False: it is not what was kept, or memory is exhausted. */
bool python_saved_load(const struct snap_runtime *runtime, const struct python_saved *out);

#endif
