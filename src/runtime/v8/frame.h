/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_FRAME_H
#define STAKEOUT_RUNTIME_V8_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/vec.h"
#include "model/maps.h"
#include "model/mem.h"
#include "model/stack.h"
#include "target/modules.h"
#include "runtime/v8/deopt.h"
#include "runtime/v8/heap.h"

/*
 * A native frame that is V8's: of its builtins, which are in its file without unwind information, or of code that it made.
 * All of them keep frame pointers, and below that a context and the function, or a mark that says what else it is.
 */
struct v8_place {
	uint32_t raw;
	uint64_t pc; /* in code that was made at run time; 0: it is none of that, or not known */
	bool is_builtin; /* code of the file: the interpreter is one of them */
	bool is_exact;   /* nothing was called: what it does now may not be in its frame yet */
	uint64_t kind;   /* the mark; UINT64_MAX: it is a function's */
	uint64_t function; /* 0: it has none, or a mark and none that is known */
	uint64_t shared;   /* of the function, where that is known instead */
	uint64_t bytecode;
	uint64_t offset;
	bool is_known; /* nothing more can be learnt of it */
};

#define V8_NO_KIND UINT64_MAX
#define V8_AT_EDGE (UINT64_MAX - 1) /* a function of the program that has no whole frame: it has just begun, or returns */

struct v8_places {
	VEC_FIELDS(struct v8_place);
};

/* Code in no file: where V8 is, that is what it compiled. */
bool v8_is_made_code(const struct maps *maps, uint64_t pc);

/* From the first to the last of what its file has as code. */
struct v8_code_range {
	uint64_t start, end;
	bool has_copies; /* parts of the file are mapped as code elsewhere, too */
};

/* False: it is not mapped. */
bool v8_find_code(const struct v8_layout *layout, const struct maps *maps, struct v8_code_range *out);

/* Where the frames of a stack are found. */
struct v8_process {
	const struct v8_layout *layout;
	const struct arch *arch;
	const struct maps *maps;
	struct modules *modules; /* may be NULL */
};

/* Appends those of a stack whose memory is `mem`. False when memory is exhausted. */
bool v8_places_find(const struct v8_process *process, struct mem *mem, const struct raw_stack *raw, struct v8_places *out);

/* What a frame of a function shows. */
struct js_frame {
	char name[HEAP_TEXT + 1];
	char file[HEAP_TEXT + 1]; /* "": it is of no script */
	uint32_t line;            /* 0: not known */
	enum line_kind line_kind;
	const char *tier;
	bool is_stub; /* a function of V8 that nobody can call, and that has no name for programs */
};

/* Whether there is a function to be read. */
static inline bool v8_place_is_function(const struct v8_place *place)
{
	return place->function || place->shared;
}

/*
 * The functions of a frame: what was compiled into each other, or its own only. False: it has none that can be read. What is
 * missing may still come when pages->lacks; then more than its own may turn out.
 */
bool v8_place_calls(const struct heap *heap, const struct v8_place *place, struct v8_calls *out);

/* One of these. False: the function cannot be named. */
bool js_frame_read(const struct heap *heap, const struct v8_place *place, const struct v8_call *call, struct js_frame *out);

#endif
