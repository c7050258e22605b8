/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_LAYOUT_H
#define STAKEOUT_RUNTIME_V8_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/image.h"

/*
 * What V8 says of itself to debuggers: numbers that its file exports as v8dbg_*: where the fields of its objects are, which
 * types they have, and where a frame keeps what. All of them are in one array, which is saved with a snapshot.
 */
enum v8_fact { /* append-only: their numbers are in saved snapshots */
	V8_CODE, /* an address of its file's code: the mapping there tells which file that is */
	V8_MAJOR,
	V8_MINOR,
	V8_BUILD,
	V8_SMI_SHIFT, /* 31: small integers are in the upper half of a word */

	/* in a frame, from its frame pointer */
	V8_FP_CONTEXT, /* or a mark, which says what kind of frame it is */
	V8_FP_FUNCTION,
	V8_FP_BYTECODE,
	V8_FP_BYTECODE_OFFSET,

	/* fields of objects */
	V8_MAP_TYPE,
	V8_FUNCTION_SHARED,
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SHARED_DATA,
	V8_SCRIPT_NAME,
	V8_SCRIPT_SOURCE,
	V8_STRING_LENGTH,
	V8_SEQ_ONE_BYTE_CHARS,
	V8_SEQ_TWO_BYTE_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_SLICED_PARENT,
	V8_SLICED_OFFSET,
	V8_THIN_ACTUAL,
	V8_EXTERNAL_RESOURCE,
	V8_ARRAY_LENGTH,
	V8_ARRAY_DATA,
	V8_BYTECODE_DATA,
	V8_BYTECODE_WRAPPER, /* from 12 on; before, absent */

	/* slots of a ScopeInfo, without its map */
	V8_SCOPE_LOCALS,
	V8_SCOPE_FIRST_VARS,

	/* types of objects */
	V8_TYPE_FUNCTION_FIRST,
	V8_TYPE_FUNCTION_LAST,
	V8_TYPE_SHARED,
	V8_TYPE_SCOPE,
	V8_TYPE_SCRIPT,
	V8_TYPE_BYTECODE,
	V8_TYPE_BYTES,
	V8_TYPE_TRUSTED_BYTES,
	V8_TYPE_ODDBALL,
	V8_TYPE_NO_STRING, /* this and all above */

	/* representations of strings: bits of their types */
	V8_STRING_REPRESENTATION,
	V8_STRING_ENCODING,
	V8_TAG_CONS,
	V8_TAG_EXTERNAL,
	V8_TAG_SLICED,
	V8_TAG_THIN,
	V8_TAG_ONE_BYTE,

	/* kinds of frames */
	V8_FRAME_ENTRY,
	V8_FRAME_CONSTRUCT_ENTRY,
	V8_FRAME_EXIT,
	V8_FRAME_STUB,
	V8_FRAME_INTERNAL,
	V8_FRAME_CONSTRUCT,
	V8_FRAME_FAST_CONSTRUCT,
	V8_FRAME_BUILTIN_EXIT,
	V8_FRAME_API_CALLBACK_EXIT,
	V8_FRAME_API_ACCESSOR_EXIT,
	V8_FRAME_CONTINUATION,
	V8_FRAME_JS_CONTINUATION,
	V8_FRAME_JS_CATCHING_CONTINUATION,
	V8_FRAME_IRREGEXP,
	V8_FRAME_WASM,
	V8_FRAME_JS_TO_WASM,
	V8_FRAME_WASM_TO_JS,

	/* compiled code: a Code tells of instructions that follow it, or are an object of their own, a stream */
	V8_STREAM_START, /* of the instructions in the object that has them */
	V8_CODE_STREAM,
	V8_CODE_FLAGS,
	V8_CODE_SIZE,    /* of the instructions */
	V8_KIND_BASELINE, /* of code; two kinds of optimised code follow */
	V8_TYPE_CODE,
	V8_TYPE_STREAM,
	V8_TYPE_INTERPRETER_DATA,
	V8_TYPE_SHARED_WRAPPER,
	V8_TYPE_ARRAY,
	V8_TYPE_WEAK_ARRAY,
	V8_TYPE_TRUSTED_ARRAY,
	V8_TYPE_TRUSTED_WEAK_ARRAY,
	V8_TYPE_PROTECTED_ARRAY,

	V8_FACT_COUNT,
};

#define V8_ABSENT UINT64_MAX

struct v8_layout {
	uint64_t facts[V8_FACT_COUNT]; /* signed ones are sign-extended */
};

static inline bool v8_has(const struct v8_layout *layout, enum v8_fact fact)
{
	return layout->facts[fact] != V8_ABSENT;
}

/* Whether the file has V8 in it. */
bool v8_layout_is_in(struct image *image);

/* From what the file exports; what it does not is absent. */
void v8_layout_read(struct image *image, struct v8_layout *out);

/* From the numbers of a snapshot. */
void v8_layout_load(const uint64_t *facts, uint32_t n, struct v8_layout *out);

/* 0, or a sentence why it cannot be used. */
int v8_layout_check(const struct v8_layout *layout, struct err *err);

/* "EntryFrame"; NULL: no such kind of frame is known. */
const char *v8_frame_kind(const struct v8_layout *layout, uint64_t kind);

#endif
