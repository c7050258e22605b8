/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_DEOPT_H
#define STAKEOUT_RUNTIME_V8_DEOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/v8/code.h"
#include "runtime/v8/safepoint.h"
#include "runtime/v8/translation.h"

/* A function that is being executed, and where it is. */
struct v8_call {
	uint64_t shared;
	uint64_t bytecode; /* 0: it has none, or where it is is not known */
	int64_t offset;    /* of the bytecode; -1: its entry */
	bool is_builtin;   /* it was said to be one of V8's */
};

struct v8_calls {
	struct v8_call data[TRANSLATION_FRAMES]; /* the innermost first */
	size_t len;
	bool is_left; /* V8 has left the code since, and dropped what it knew: more may have been executed there */
};

/*
 * V8 can leave optimised code wherever it calls something: it keeps a translation of the frame into those of the interpreter.
 * False: it tells nothing of this place, what it tells cannot be, or is not of the function `shared`.
 */
bool v8_deopt_find(const struct heap *heap, const struct v8_code *code, const struct v8_safepoint *place, uint64_t shared,
		   struct v8_calls *out);

/* Whether V8 has dropped all that it kept of the code, which 10.2 does when it has left it for good, and later releases never. */
bool v8_deopt_is_dropped(const struct heap *heap, const struct v8_code *code);

#endif
