/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_FUNCTION_H
#define STAKEOUT_RUNTIME_V8_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/v8/heap.h"

/* What V8 knows of a function: JSFunction → SharedFunctionInfo → ScopeInfo, which has its name, and Script. */
struct js_function {
	char name[HEAP_TEXT + 1]; /* "": it has none */
	char file[HEAP_TEXT + 1]; /* "": it is not of a script, or that has no name */
	uint64_t shared;
	uint64_t source; /* of the script; 0: there is none */
	bool has_script;
	bool has_start;
	uint32_t start; /* position of its definition */
};

/* What functions of the same source share: a SharedFunctionInfo. False: it is no function, or cannot be read. */
bool js_function_shared(const struct heap *heap, uint64_t function, uint64_t *out);

/* False: it is none of these, or not all of it can be read. */
bool js_shared_read(const struct heap *heap, uint64_t shared, struct js_function *out);

#endif
