/* SPDX-License-Identifier: MIT */
#include "runtime/python/blocks.h"

#include <string.h>

#include "runtime/python/strings.h"
#include "runtime/python/types.h"

enum {
	MAX_VALUES = 256,   /* of a frame */
	MAX_WORK = 500000,  /* frames, values, and what is kept of functions, of all threads together */
	UNIT_BYTES = 64,    /* as much work as one of the former */
	FIRST_UNBOUND = 14, /* since 3.14 a method is kept beside its object */
	SLOT_TAGS = 3,	    /* of a value in a frame, since then */
	UNIT = 2,	    /* bytes of an instruction */
	OBJECT_SIZE = 16,

	/* PyFrameObject, up to 3.10: what its values are in, how many blocks it is in, and which. */
	FRAME_VALUES = 64,
	BLOCKS_AFTER_INSTR = 8,
	BLOCKS_BEFORE_LOCALS = 240,
	BLOCK_SIZE = 12,
	BLOCK_LEVEL = 8,
	MAX_BLOCKS = 20,

	FUNCTION_DEFINITION = 16, /* PyCFunctionObject */
	FUNCTION_SELF = 24,
	METHOD_DEFINITION = 40, /* PyMethodDescrObject */
};

struct function {
	uint64_t nvariables;
	const uint8_t *handlers; /* since 3.11 */
	size_t len;
};

bool python_blocks_init(struct python_blocks *blocks, const struct python_layout *layout, struct mem *mem)
{
	*blocks = (struct python_blocks){.layout = layout, .mem = mem, .arena = arena_create(), .budget = {.left = MAX_WORK}};
	blocks->releases = (struct python_releases){.layout = layout, .mem = mem, .arena = blocks->arena, .budget = &blocks->budget};
	return blocks->arena;
}

void python_blocks_deinit(struct python_blocks *blocks)
{
	u64map_deinit(&blocks->functions);
	python_releases_deinit(&blocks->releases);
	arena_destroy(blocks->arena);
}

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static bool read_u32(struct mem *mem, uint64_t address, uint32_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static void read_handlers(struct python_blocks *blocks, uint64_t code, struct function *out)
{
	const uint64_t *at = blocks->layout->at;
	uint64_t table, variables;

	if (at[PY_FRAMES] == PY_FRAMES_OBJECTS || !at[PY_CODE_EXCEPTIONS] || !at[PY_CODE_VARIABLES])
		return;
	if (!read_u64(blocks->mem, code + at[PY_CODE_EXCEPTIONS], &table) || !read_u64(blocks->mem, code + at[PY_CODE_VARIABLES], &variables) ||
	    !read_u64(blocks->mem, variables + OBJECT_SIZE, &out->nvariables) ||
	    !python_bytes(blocks->mem, table, blocks->arena, &out->handlers, &out->len) || !budget_take(&blocks->budget, out->len / UNIT_BYTES))
		out->len = 0;
}

/* NULL when memory is exhausted. */
static struct function *find_function(struct python_blocks *blocks, uint64_t code)
{
	bool created;
	uint64_t *slot = u64map_put(&blocks->functions, code, &created);
	struct function *function = slot && created ? arena_alloc(blocks->arena, sizeof(*function)) : NULL;

	if (!slot || !created)
		return slot ? (struct function *)(uintptr_t)*slot : NULL;
	*slot = (uintptr_t)function;
	if (function)
		read_handlers(blocks, code, function);
	return function;
}

/* Six bits in each byte; the seventh is set in all but the last. False: there is none. */
static bool read_number(const struct function *f, size_t *at, uint64_t *out)
{
	uint8_t byte = 1 << 6;

	for (*out = 0; byte & 1 << 6; *out = *out << 6 | (byte & 63)) {
		if (*at == f->len)
			return false;
		byte = f->handlers[(*at)++];
	}
	return true;
}

/* How many values of the frame an exception there would leave, so that they are what they seem: blocks are given up by exceptions, too. */
static uint64_t depth_by_handlers(const struct function *f, uint64_t unit)
{
	uint64_t start, size, target, depth;

	for (size_t at = 0;
	     read_number(f, &at, &start) && read_number(f, &at, &size) && read_number(f, &at, &target) && read_number(f, &at, &depth);)
		if (unit >= start && unit - start < size)
			return depth >> 1;
	return 0;
}

/* The same up to 3.10, when frames themselves knew their blocks. */
static uint64_t depth_by_blocks(const struct python_blocks *blocks, uint64_t frame)
{
	const uint64_t *at = blocks->layout->at;
	uint32_t count, depth;

	if (!read_u32(blocks->mem, frame + at[PY_FRAME_INSTR] + BLOCKS_AFTER_INSTR, &count) || !count || count > MAX_BLOCKS ||
	    !read_u32(blocks->mem, frame + at[PY_FRAME_LOCALS] - BLOCKS_BEFORE_LOCALS + (count - 1) * BLOCK_SIZE + BLOCK_LEVEL, &depth))
		return 0;
	return depth;
}

static size_t read_values(struct python_blocks *blocks, const struct python_frame *frame, uint64_t values[MAX_VALUES])
{
	const uint64_t *at = blocks->layout->at;
	const struct function *function = find_function(blocks, frame->code);
	uint64_t depth, address;

	if (at[PY_FRAMES] == PY_FRAMES_OBJECTS) {
		depth = depth_by_blocks(blocks, frame->address);
		if (!depth || !read_u64(blocks->mem, frame->address + FRAME_VALUES, &address))
			return 0;
	} else {
		if (!function || !function->len)
			return 0;
		depth = depth_by_handlers(function, (frame->instr - frame->code - at[PY_CODE_BYTES]) / UNIT);
		address = frame->address + at[PY_FRAME_LOCALS] + function->nvariables * 8;
	}
	if (depth > MAX_VALUES || !mem_read_exact(blocks->mem, address, values, depth * sizeof(*values)))
		return 0;
	return (size_t)depth;
}

/* Whether the definition of a function or a method in C is that of __exit__(). */
static bool is_exit(struct mem *mem, uint64_t pointer)
{
	char name[sizeof("__exit__")];
	uint64_t definition, text;

	return read_u64(mem, pointer, &definition) && read_u64(mem, definition, &text) && mem_read_exact(mem, text, name, sizeof(name)) &&
	       memcmp(name, "__exit__", sizeof(name)) == 0;
}

/* What a value would let go of, or since 3.14 a value and the next one, if it lets go of anything. */
static uint64_t object_of(const struct python_blocks *blocks, uint64_t value, uint64_t next)
{
	uint64_t self;

	if (python_minor(blocks->layout) >= FIRST_UNBOUND)
		return next & ~(uint64_t)SLOT_TAGS;
	return value && read_u64(blocks->mem, value + FUNCTION_SELF, &self) ? self : 0;
}

/* It is what lets go of something. */
static bool lets_go(const struct python_blocks *blocks, uint64_t value)
{
	if (python_minor(blocks->layout) < FIRST_UNBOUND)
		return python_is_a(blocks->mem, value, "builtin_function_or_method") && is_exit(blocks->mem, value + FUNCTION_DEFINITION);
	value &= ~(uint64_t)SLOT_TAGS;
	return python_is_a(blocks->mem, value, "method_descriptor") && is_exit(blocks->mem, value + METHOD_DEFINITION);
}

size_t python_blocks_find(struct python_blocks *blocks, const struct python_chain *chain, const struct u64map *locks,
			  uint64_t out[PYTHON_MAX_BLOCK_LOCKS])
{
	struct python_release_walk walk = {0};
	size_t n = 0;

	for (size_t i = 0; i < chain->len; i++) {
		uint64_t values[MAX_VALUES + 1];
		const size_t nvalues = read_values(blocks, &chain->frames[i], values);

		if (!budget_take(&blocks->budget, 1 + nvalues))
			return 0;
		values[nvalues] = 0;
		for (size_t k = 0; k < nvalues && n < PYTHON_MAX_BLOCK_LOCKS; k++) {
			const uint64_t object = object_of(blocks, values[k], values[k + 1]);

			if (!object || !u64map_find(locks, object) || !lets_go(blocks, values[k]))
				continue;
			if (!python_releases_nothing(&blocks->releases, chain, i, &walk))
				return n;
			out[n++] = object;
		}
	}
	return n;
}
