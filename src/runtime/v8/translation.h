/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_TRANSLATION_H
#define STAKEOUT_RUNTIME_V8_TRANSLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/v8/heap.h"
#include "runtime/v8/tables.h"

/*
 * How a frame of optimised code becomes frames of the interpreter: a program of instructions, each with numbers as operands.
 * The first tells how many frames follow; each frame is followed by what tells its values, which are passed over. From V8 11
 * on an instruction may say that so many are the same as in another translation.
 */
struct v8_translated {
	int32_t offset;   /* of the bytecode; -1: its entry */
	int32_t shared;   /* number of a literal, */
	int32_t bytecode; /* and of another, where the version has those */
	bool is_builtin;  /* a builtin of V8, which goes on when what it called returns: it has no bytecode */
	int32_t function; /* a literal, too; -1: it is none. Only of builtins, whose `shared` may be that of their caller */
};

enum { TRANSLATION_FRAMES = 64 }; /* functions that were inlined into each other, at most; V8 stops at 50 */

struct v8_translation {
	struct v8_translated data[TRANSLATION_FRAMES]; /* the outermost first */
	size_t len;
};

/* The frames of functions in that which begins `at`. False: it is damaged, has none or too many, or cannot be read. */
bool v8_translation_read(const struct heap *heap, const struct v8_tables *tables, uint64_t bytes, uint32_t at,
			 struct v8_translation *out);

#endif
