/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_SCOPES_H
#define STAKEOUT_RUNTIME_HOTSPOT_SCOPES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot/code_cache.h"

enum { SCOPES_MAX = 64 };

/* A method that compiled code is in at an address, innermost first: all but the last were inlined. */
struct scope {
	uint64_t method;
	int32_t bci; /* -1: at its entry; INT32_MAX: not known */
};

struct scopes {
	struct scope data[SCOPES_MAX];
	size_t len;
	bool approximate; /* the address is none of those that the compiler told of: the line is of one near it */
	const char *tier; /* "C1", "C2" */
};

/*
 * `pc` is where a call returns to, or where execution stood. False: not all that tells of it is known, or it cannot be
 * right; nothing of it is used.
 */
bool scopes_find(struct code_cache *cache, const struct blob *blob, uint64_t pc, struct scopes *out);

/* Where a frame was that is to be left for the interpreter: its pc is that of a handler. *slot: offset from its sp of the
 * word that tells; false: the pc is what it seems. */
bool scopes_is_deoptimized(struct code_cache *cache, const struct blob *blob, uint64_t pc, uint64_t *slot);

/* The method as a whole: of the wrapper of a native one. */
bool scopes_method(struct code_cache *cache, const struct blob *blob, uint64_t *method);

#endif
