/* SPDX-License-Identifier: MIT */
#include "symbol/readable.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "symbol/demangle.h"

enum { CHUNK = 64 }; /* names that a thread takes at a time */

struct form_request {
	const char *name;
	char *text; /* the source form; NULL: it has none */
};

struct readable {
	struct arena *arena;
	bool return_types;
	struct u64map forms; /* address of the interned name to that of its source form; 0: not made yet */
	VEC(struct form_request) requests;
};

struct readable *readable_create(struct arena *arena, bool return_types)
{
	struct readable *readable = calloc(1, sizeof(*readable));

	if (readable)
		*readable = (struct readable){.arena = arena, .return_types = return_types};
	return readable;
}

void readable_destroy(struct readable *readable)
{
	if (!readable)
		return;
	u64map_deinit(&readable->forms);
	vec_deinit(&readable->requests);
	free(readable);
}

static char *make(const struct readable *readable, const char *name)
{
	return readable->return_types ? demangle_with_return_type(name) : demangle(name);
}

bool readable_want(struct readable *readable, const char *name)
{
	bool created;

	return u64map_put(&readable->forms, (uintptr_t)name, &created) &&
	       (!created || vec_push(&readable->requests, (struct form_request){.name = name}));
}

static void make_chunk(void *ctx, size_t chunk)
{
	struct readable *readable = ctx;

	for (size_t i = chunk * CHUNK; i < (chunk + 1) * CHUNK && i < readable->requests.len; i++)
		readable->requests.data[i].text = make(readable, readable->requests.data[i].name);
}

static const char *keep(struct readable *readable, const char *name, const char *text)
{
	const char *form = text ? arena_intern(readable->arena, text) : NULL;

	return form ? form : name;
}

void readable_prepare(struct readable *readable)
{
	parallel_for((readable->requests.len + CHUNK - 1) / CHUNK, make_chunk, readable);
	for (size_t i = 0; i < readable->requests.len; i++) {
		const struct form_request *request = &readable->requests.data[i];

		*u64map_find(&readable->forms, (uintptr_t)request->name) =
			(uintptr_t)keep(readable, request->name, request->text);
		free(request->text);
	}
	readable->requests.len = 0;
}

const char *readable_name(struct readable *readable, const char *name)
{
	bool created;
	uint64_t *slot = u64map_put(&readable->forms, (uintptr_t)name, &created);
	_cleanup_free_ char *text = slot && *slot ? NULL : make(readable, name);

	if (slot && !*slot)
		*slot = (uintptr_t)keep(readable, name, text);
	return slot ? (const char *)(uintptr_t)*slot : keep(readable, name, text);
}
