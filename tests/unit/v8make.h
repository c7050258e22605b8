/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_V8MAKE_H
#define STAKEOUT_TESTS_V8MAKE_H

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/v8/heap.h"

/* A heap of V8 in the making, laid out as that of 11.3. */
enum {
	V8MAKE_BASE = 0x100000,
	V8MAKE_SIZE = 64 << 10,
	V8MAKE_TYPE_SEQ_ONE = 40,
	V8MAKE_TYPE_SEQ_TWO = 32,
	V8MAKE_TYPE_CONS_ONE = 41,
	V8MAKE_TYPE_EXTERNAL_ONE = 42,
	V8MAKE_TYPE_UNCACHED_ONE = 58,
	V8MAKE_TYPE_SLICED_ONE = 43,
	V8MAKE_TYPE_THIN_ONE = 45,
	V8MAKE_TYPE_ODDBALL = 131,
	V8MAKE_TYPE_SCRIPT = 167,
	V8MAKE_TYPE_BYTES = 190,
	V8MAKE_TYPE_BYTECODE = 191,
	V8MAKE_TYPE_SCOPE = 261,
	V8MAKE_TYPE_SHARED = 262,
	V8MAKE_TYPE_FUNCTION = 2066,
	V8MAKE_TYPE_INTERPRETER_DATA = 159,
	V8MAKE_TYPE_ARRAY = 175,
	V8MAKE_TYPE_WEAK_ARRAY = 240,
	V8MAKE_TYPE_CODE = 245,
	V8MAKE_TYPE_STREAM = 252,
	V8MAKE_BASELINE = 11, /* kinds of code */
	V8MAKE_MAGLEV = 12,
	V8MAKE_TURBOFAN = 13,
};

struct v8make {
	uint8_t *bytes; /* of V8MAKE_SIZE */
	size_t len;
	struct v8_layout layout;
	struct pages pages;
	struct heap heap;
};

static inline void v8make_layout(struct v8_layout *out)
{
	static const struct {
		enum v8_fact fact;
		int64_t value;
	} known[] = {
		{V8_CODE, 0x400000}, {V8_MAJOR, 11}, {V8_MINOR, 3}, {V8_BUILD, 244}, {V8_SMI_SHIFT, 31},
		{V8_FP_CONTEXT, -8}, {V8_FP_FUNCTION, -16}, {V8_FP_BYTECODE, -32}, {V8_FP_BYTECODE_OFFSET, -40},
		{V8_MAP_TYPE, 12}, {V8_FUNCTION_SHARED, 24}, {V8_SHARED_NAME, 16}, {V8_SHARED_SCRIPT, 32}, {V8_SHARED_DATA, 8},
		{V8_SCRIPT_NAME, 16}, {V8_SCRIPT_SOURCE, 8}, {V8_STRING_LENGTH, 12}, {V8_SEQ_ONE_BYTE_CHARS, 16},
		{V8_SEQ_TWO_BYTE_CHARS, 16}, {V8_CONS_FIRST, 16}, {V8_CONS_SECOND, 24}, {V8_SLICED_PARENT, 16},
		{V8_SLICED_OFFSET, 24}, {V8_THIN_ACTUAL, 16}, {V8_EXTERNAL_RESOURCE, 16}, {V8_ARRAY_LENGTH, 8}, {V8_ARRAY_DATA, 16},
		{V8_BYTECODE_DATA, 54}, {V8_SCOPE_LOCALS, 2}, {V8_SCOPE_FIRST_VARS, 3},
		{V8_TYPE_FUNCTION_FIRST, V8MAKE_TYPE_FUNCTION}, {V8_TYPE_FUNCTION_LAST, V8MAKE_TYPE_FUNCTION + 16},
		{V8_TYPE_SHARED, V8MAKE_TYPE_SHARED}, {V8_TYPE_SCOPE, V8MAKE_TYPE_SCOPE}, {V8_TYPE_SCRIPT, V8MAKE_TYPE_SCRIPT},
		{V8_TYPE_BYTECODE, V8MAKE_TYPE_BYTECODE}, {V8_TYPE_BYTES, V8MAKE_TYPE_BYTES}, {V8_TYPE_ODDBALL, V8MAKE_TYPE_ODDBALL},
		{V8_TYPE_NO_STRING, 128}, {V8_STRING_REPRESENTATION, 7}, {V8_STRING_ENCODING, 8}, {V8_TAG_CONS, 1},
		{V8_TAG_EXTERNAL, 2}, {V8_TAG_SLICED, 3}, {V8_TAG_THIN, 5}, {V8_TAG_ONE_BYTE, 8}, {V8_FRAME_ENTRY, 1},
		{V8_FRAME_STUB, 17}, {V8_FRAME_BUILTIN_EXIT, 25}, {V8_STREAM_START, 16}, {V8_KIND_BASELINE, V8MAKE_BASELINE},
		{V8_TYPE_CODE, V8MAKE_TYPE_CODE}, {V8_TYPE_STREAM, V8MAKE_TYPE_STREAM}, {V8_TYPE_ARRAY, V8MAKE_TYPE_ARRAY},
		{V8_TYPE_WEAK_ARRAY, V8MAKE_TYPE_WEAK_ARRAY}, {V8_TYPE_INTERPRETER_DATA, V8MAKE_TYPE_INTERPRETER_DATA},
	};

	v8_layout_load(NULL, 0, out);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		out->facts[known[i].fact] = (uint64_t)known[i].value;
}

static inline void v8make_init(struct v8make *m)
{
	*m = (struct v8make){.bytes = calloc(1, V8MAKE_SIZE)};
	assert_non_null(m->bytes);
	v8make_layout(&m->layout);
	pages_init(&m->pages, V8MAKE_SIZE);
	m->heap = (struct heap){.layout = &m->layout, .pages = &m->pages};
}

/* No more objects: now it can be read. */
static inline void v8make_finish(struct v8make *m)
{
	struct ask_range range = {.address = V8MAKE_BASE, .len = V8MAKE_SIZE, .got = V8MAKE_SIZE, .data = m->bytes};
	struct ask ask = {.data = &range, .len = 1};

	assert_true(pages_take(&m->pages, &ask));
}

static inline void v8make_deinit(struct v8make *m)
{
	pages_deinit(&m->pages);
	free(m->bytes);
}

/* The one of a test, and what cmocka does before and after each. */
static struct v8make v8made;

static inline int v8make_set_up(void **state)
{
	v8make_init(&v8made);
	return 0;
}

static inline int v8make_tear_down(void **state)
{
	v8make_deinit(&v8made);
	return 0;
}

static inline void v8make_put(struct v8make *m, uint64_t object, size_t offset, uint64_t word)
{
	memcpy(m->bytes + (object - 1 - V8MAKE_BASE) + offset, &word, sizeof(word));
}

static inline uint64_t v8make_small(int32_t value)
{
	return (uint64_t)(uint32_t)value << 32;
}

static inline uint64_t v8make_room(struct v8make *m, size_t size)
{
	uint64_t object = V8MAKE_BASE + m->len + 1;

	m->len += (size + 7) / 8 * 8;
	assert_true(m->len <= V8MAKE_SIZE);
	return object;
}

/* An object with a map of its own. */
static inline uint64_t v8make_object(struct v8make *m, uint16_t type, size_t size)
{
	uint64_t map = v8make_room(m, 16), object = v8make_room(m, size);

	memcpy(m->bytes + (map - 1 - V8MAKE_BASE) + 12, &type, sizeof(type));
	v8make_put(m, object, 0, map);
	return object;
}

static inline uint64_t v8make_string_of(struct v8make *m, uint16_t type, int32_t len, size_t size)
{
	uint64_t object = v8make_object(m, type, 16 + size);

	memcpy(m->bytes + (object - 1 - V8MAKE_BASE) + 12, &len, sizeof(len));
	return object;
}

static inline uint64_t v8make_string(struct v8make *m, const char *text)
{
	size_t len = strlen(text);
	uint64_t object = v8make_string_of(m, V8MAKE_TYPE_SEQ_ONE, (int32_t)len, len);

	memcpy(m->bytes + (object - 1 - V8MAKE_BASE) + 16, text, len);
	return object;
}

static inline uint64_t v8make_wide_string(struct v8make *m, const uint16_t *text, size_t len)
{
	uint64_t object = v8make_string_of(m, V8MAKE_TYPE_SEQ_TWO, (int32_t)len, 2 * len);

	memcpy(m->bytes + (object - 1 - V8MAKE_BASE) + 16, text, 2 * len);
	return object;
}

static inline uint64_t v8make_pair(struct v8make *m, uint16_t type, int32_t len, uint64_t first, uint64_t second)
{
	uint64_t object = v8make_string_of(m, type, len, 16);

	v8make_put(m, object, 16, first);
	v8make_put(m, object, 24, second);
	return object;
}

static inline uint64_t v8make_bytes(struct v8make *m, const void *bytes, size_t len)
{
	uint64_t object = v8make_object(m, V8MAKE_TYPE_BYTES, 16 + len);

	v8make_put(m, object, 8, v8make_small((int32_t)len));
	memcpy(m->bytes + (object - 1 - V8MAKE_BASE) + 16, bytes, len);
	return object;
}

static inline uint64_t v8make_array(struct v8make *m, uint16_t type, const uint64_t *elements, size_t n)
{
	uint64_t object = v8make_object(m, type, 16 + 8 * n);

	v8make_put(m, object, 8, v8make_small((int32_t)n));
	for (size_t i = 0; i < n; i++)
		v8make_put(m, object, 16 + 8 * i, elements[i]);
	return object;
}

/* So many bytes of bytecode; the table of their positions may be 0. */
static inline uint64_t v8make_bytecode(struct v8make *m, const void *bytes, size_t len, uint64_t positions)
{
	uint64_t object = v8make_object(m, V8MAKE_TYPE_BYTECODE, 54 + len);

	v8make_put(m, object, 8, v8make_small((int32_t)len));
	v8make_put(m, object, 32, positions);
	memcpy(m->bytes + (object - 1 - V8MAKE_BASE) + 54, bytes, len);
	return object;
}

/* Compiled code: its instructions, which are all the same, and behind them a table. */
struct v8make_code {
	uint64_t object, stream, start;
};

static inline struct v8make_code v8make_code(struct v8make *m, uint32_t kind, uint32_t size, const void *table, size_t len)
{
	struct v8make_code code = {.object = v8make_object(m, V8MAKE_TYPE_CODE, 88)};
	uint64_t map = v8make_room(m, 16);
	const uint16_t type = V8MAKE_TYPE_STREAM;

	while (m->len % 32 != 16)
		v8make_room(m, 8);
	code.stream = v8make_room(m, 16 + size + len);
	code.start = code.stream - 1 + 16;
	memcpy(m->bytes + (map - 1 - V8MAKE_BASE) + 12, &type, sizeof(type));
	v8make_put(m, code.stream, 0, map);
	v8make_put(m, code.stream, 8, code.object);
	memset(m->bytes + (code.start - V8MAKE_BASE), 0xd5, size);
	if (len)
		memcpy(m->bytes + (code.start - V8MAKE_BASE) + size, table, len);
	v8make_put(m, code.object, 32, code.stream);
	v8make_put(m, code.object, 48, kind);
	v8make_put(m, code.object, 56, size);
	return code;
}

/* Its slots, without the map. */
static inline uint64_t v8make_scope(struct v8make *m, const uint64_t *slots, size_t n)
{
	uint64_t scope = v8make_object(m, V8MAKE_TYPE_SCOPE, 8 + 8 * n);

	for (size_t i = 0; i < n; i++)
		v8make_put(m, scope, 8 + 8 * i, slots[i]);
	return scope;
}

static inline uint64_t v8make_script(struct v8make *m, uint64_t name, uint64_t source)
{
	uint64_t script = v8make_object(m, V8MAKE_TYPE_SCRIPT, 64);

	v8make_put(m, script, 8, source);
	v8make_put(m, script, 16, name);
	return script;
}

static inline uint64_t v8make_function(struct v8make *m, uint64_t name_or_scope, uint64_t script)
{
	uint64_t function = v8make_object(m, V8MAKE_TYPE_FUNCTION, 64), shared = v8make_object(m, V8MAKE_TYPE_SHARED, 64);

	v8make_put(m, function, 24, shared);
	v8make_put(m, shared, 16, name_or_scope);
	v8make_put(m, shared, 32, script);
	return function;
}

#endif
