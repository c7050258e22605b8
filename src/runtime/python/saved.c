/* SPDX-License-Identifier: MIT */
#include "runtime/python/saved.h"

#include <string.h>

enum {
	THREAD_FACTS = 8,   /* words of each thread behind those of the layout, */
	SIGHTING_FACTS = 2, /* of each code object behind these, */
	PLACE_FACTS = 2,    /* of each activation of the interpreter, */
	TASK_FACTS = 3,     /* and of each task at the end */
};

bool python_saved_keep(const struct python_saved *from, struct snapshot *snap, struct snap_runtime *runtime)
{
	size_t words = PY_WORDS + from->threads->len * THREAD_FACTS + from->sightings->len * SIGHTING_FACTS +
		       from->activations->len * PLACE_FACTS + from->tasks->len * TASK_FACTS;
	uint64_t *facts = arena_alloc(snap->arena, words * sizeof(*facts)), *next = facts + PY_WORDS;

	if (!facts)
		return false;
	from->layout->at[PY_THREADS] = from->threads->len;
	from->layout->at[PY_SIGHTINGS] = from->sightings->len;
	from->layout->at[PY_PLACES] = from->activations->len;
	memcpy(facts, from->layout->at, PY_WORDS * sizeof(*facts));
	for (size_t i = 0; i < from->threads->len; i++) {
		const struct python_thread *thread = &from->threads->data[i];

		*next++ = (uint64_t)(uint32_t)thread->holder << 32 | (uint32_t)thread->tid;
		*next++ = thread->tstate;
		*next++ = thread->thread;
		*next++ = thread->interp;
		*next++ = thread->name;
		*next++ = thread->is_daemon;
		*next++ = (uint64_t)(uint32_t)thread->joined << 32 | (uint32_t)thread->native;
		*next++ = thread->lock;
	}
	for (uint32_t i = 0; i < from->sightings->len; i++) {
		*next++ = from->sightings->data[i].code;
		*next++ = (uint64_t)from->sightings->data[i].gone << 32 | from->sightings->data[i].version;
	}
	for (size_t i = 0; i < from->activations->len; i++) {
		*next++ = from->activations->data[i].anchor;
		*next++ = from->activations->data[i].pc;
	}
	for (size_t i = 0; i < from->tasks->len; i++) {
		*next++ = from->tasks->data[i].object;
		*next++ = (uint64_t)from->tasks->data[i].tid;
		*next++ = from->tasks->data[i].has_changed;
	}
	runtime->facts = facts;
	runtime->nfacts = (uint32_t)words;
	return true;
}

/* What has not been read yet. */
struct facts {
	const uint64_t *data;
	uint64_t left;
};

/* The next so many; NULL: there are not as many. */
static const uint64_t *take(struct facts *facts, uint64_t count, uint64_t words)
{
	const uint64_t *taken = facts->data;

	if (count > facts->left / words)
		return NULL;
	facts->data += count * words;
	facts->left -= count * words;
	return taken;
}

static bool load_threads(const uint64_t *fact, uint64_t count, struct python_threads *out)
{
	for (; fact && count; count--, fact += THREAD_FACTS) {
		const struct python_thread thread = {
			.tid = (pid_t)fact[0],
			.holder = (pid_t)(fact[0] >> 32),
			.tstate = fact[1],
			.thread = fact[2],
			.interp = fact[3],
			.name = fact[4],
			.is_daemon = fact[5],
			.native = (pid_t)fact[6],
			.joined = (pid_t)(fact[6] >> 32),
			.lock = fact[7],
		};

		if (!vec_push(out, thread))
			return false;
	}
	return fact;
}

static bool load_sightings(const uint64_t *fact, uint64_t count, struct python_sightings *out)
{
	for (; fact && count; count--, fact += SIGHTING_FACTS)
		python_sightings_add(out, &(struct python_sighting){.code = fact[0], .version = (uint32_t)fact[1], .gone = fact[1] >> 32});
	return fact;
}

static bool load_activations(const uint64_t *fact, uint64_t count, struct python_activations *out)
{
	for (; fact && count; count--, fact += PLACE_FACTS)
		if (!vec_push(out, (struct python_activation){.anchor = fact[0], .pc = fact[1]}))
			return false;
	return fact;
}

static bool load_tasks(const uint64_t *fact, uint64_t count, struct python_task_list *out)
{
	for (; fact && count && out->len < PYTHON_MAX_TASKS; count--, fact += TASK_FACTS)
		if (!vec_push(out, (struct python_task_entry){.object = fact[0], .tid = (pid_t)fact[1], .has_changed = fact[2]}))
			return false;
	return fact;
}

bool python_saved_load(const struct snap_runtime *runtime, const struct python_saved *out)
{
	struct facts facts = {runtime->facts, runtime->nfacts};
	const uint64_t *at = take(&facts, 1, PY_WORDS);
	uint64_t ntasks;

	if (!at)
		return false;
	memcpy(out->layout->at, at, PY_WORDS * sizeof(*at));
	if (!load_threads(take(&facts, at[PY_THREADS], THREAD_FACTS), at[PY_THREADS], out->threads) ||
	    !load_sightings(take(&facts, at[PY_SIGHTINGS], SIGHTING_FACTS), at[PY_SIGHTINGS], out->sightings) ||
	    !load_activations(take(&facts, at[PY_PLACES], PLACE_FACTS), at[PY_PLACES], out->activations))
		return false;
	ntasks = facts.left / TASK_FACTS;
	out->tasks->cut = at[PY_TASKS_CUT];
	return load_tasks(take(&facts, ntasks, TASK_FACTS), ntasks, out->tasks) && python_layout_is_sane(out->layout);
}
