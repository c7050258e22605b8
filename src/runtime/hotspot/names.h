/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_NAMES_H
#define STAKEOUT_RUNTIME_HOTSPOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/stack.h"
#include "runtime/hotspot/frame.h"
#include "runtime/hotspot/scopes.h"

/* What is shown for the places of Java that walks came through. Many stacks have the same ones: each is named once. */
struct java_names {
	struct code_cache *cache;
	struct methods *methods;
	struct arena *arena;
	struct u64map kept; /* of places, by hash: struct kept */
	size_t nkept;       /* frames of these */
};

/* Innermost first: all but the last were inlined. */
struct java_named {
	struct frame data[SCOPES_MAX];
	size_t len; /* 0: there is no name for it */
};

void java_names_init(struct java_names *names, struct code_cache *cache, struct methods *methods, struct arena *arena);
void java_names_deinit(struct java_names *names);

/* Reads what the name takes; true when nothing of that is missing any more. */
bool java_names_know(struct java_names *names, const struct java_place *place);

/* Whether it was named before, or tried to be. */
bool java_names_has(const struct java_names *names, const struct java_place *place);

void java_names_find(struct java_names *names, const struct java_place *place, struct java_named *out);

#endif
