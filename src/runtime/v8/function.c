/* SPDX-License-Identifier: MIT */
#include "runtime/v8/function.h"

#include <string.h>

enum {
	WORD = 8,
	SCOPE_HEADER = 8,   /* its map */
	SCOPE_START = 3,    /* slot, where the variables begin behind it */
	MAX_INLINED = 75,   /* names of more variables are in a table of their own, which takes one slot */
	MAX_LOCALS = 1 << 16,
	MAX_REST = 12,      /* slots behind the variables that are looked at */
};

/* Slots of a ScopeInfo behind its variables: the function's name, one that was guessed for it, where it begins and ends. */
struct scope_rest {
	uint64_t names[2];
	size_t nnames;
	int32_t numbers[2]; /* the last ones */
	size_t nnumbers;
};

static bool read_slot(const struct heap *heap, uint64_t scope, uint64_t slot, uint64_t *out)
{
	return heap_read_at(heap, scope, SCOPE_HEADER + slot * WORD, out);
}

static void add_number(struct scope_rest *rest, int32_t number)
{
	rest->numbers[0] = rest->numbers[1];
	rest->numbers[1] = number;
	rest->nnumbers++;
}

/*
 * Which slots are there depends on flags whose places change between versions. But what is in them tells: strings are
 * names, a few values stand for what is not there, and the next object is the scope around, which follows the numbers.
 */
static bool read_rest(const struct heap *heap, uint64_t scope, uint64_t slot, struct scope_rest *out)
{
	*out = (struct scope_rest){0};
	for (unsigned i = 0; i < MAX_REST; i++) {
		uint64_t value;
		uint16_t type;

		if (!read_slot(heap, scope, slot + i, &value))
			return false;
		if (heap_is_small(value)) {
			add_number(out, heap_small(value));
			continue;
		}
		if (!heap_is_object(value))
			return true;
		if (!heap_type(heap, value, &type))
			return false;
		if (type < heap->layout->facts[V8_TYPE_NO_STRING] && out->nnames < 2)
			out->names[out->nnames++] = value;
		else if (type != heap->layout->facts[V8_TYPE_ODDBALL])
			return true;
	}
	return true;
}

/* The first name that is not empty: a function without one may have one that was guessed for it. */
static bool read_names(const struct heap *heap, const struct scope_rest *rest, char out[HEAP_TEXT + 1])
{
	for (size_t i = 0; i < rest->nnames && !out[0]; i++)
		if (!heap_string(heap, rest->names[i], out))
			return false;
	return true;
}

static void take_start(const struct scope_rest *rest, struct js_function *out)
{
	out->has_start = rest->nnumbers >= 2 && rest->numbers[0] >= 0 && rest->numbers[0] <= rest->numbers[1];
	out->start = out->has_start ? (uint32_t)rest->numbers[0] : 0;
}

static bool read_scope(const struct heap *heap, uint64_t scope, struct js_function *out)
{
	const uint64_t *facts = heap->layout->facts;
	uint64_t locals, start, first = facts[V8_SCOPE_FIRST_VARS];
	struct scope_rest rest;
	int32_t n;

	if (!read_slot(heap, scope, facts[V8_SCOPE_LOCALS], &locals) || !heap_is_small(locals))
		return false;
	n = heap_small(locals);
	if (n < 0 || n > MAX_LOCALS ||
	    !read_rest(heap, scope, first + (n < MAX_INLINED ? 2 * (uint64_t)n : 1 + (uint64_t)n), &rest))
		return false;
	take_start(&rest, out);
	if (first > SCOPE_START) { /* newer versions have it before the variables */
		if (!read_slot(heap, scope, SCOPE_START, &start))
			return false;
		out->has_start = heap_is_small(start) && heap_small(start) >= 0;
		out->start = out->has_start ? (uint32_t)heap_small(start) : 0;
	}
	return read_names(heap, &rest, out->name);
}

static bool read_name(const struct heap *heap, struct js_function *out)
{
	uint64_t value;
	uint16_t type;

	if (!heap_read(heap, out->shared, V8_SHARED_NAME, &value))
		return false;
	if (heap_is_small(value)) /* it stands for no name */
		return true;
	if (!heap_type(heap, value, &type))
		return false;
	if (type == heap->layout->facts[V8_TYPE_SCOPE])
		return read_scope(heap, value, out);
	return type < heap->layout->facts[V8_TYPE_NO_STRING] && heap_string(heap, value, out->name);
}

/* The name of a script may be anything that a program gave it. */
static bool read_script(const struct heap *heap, struct js_function *out)
{
	uint64_t script, name;
	uint16_t type;

	if (!heap_read(heap, out->shared, V8_SHARED_SCRIPT, &script) || !heap_type(heap, script, &type))
		return false;
	if (type != heap->layout->facts[V8_TYPE_SCRIPT])
		return true; /* a function of V8 itself */
	if (!heap_read(heap, script, V8_SCRIPT_NAME, &name) || !heap_read(heap, script, V8_SCRIPT_SOURCE, &out->source))
		return false;
	out->has_script = true;
	if (!heap_is_object(name))
		return true;
	if (!heap_type(heap, name, &type))
		return false;
	return type >= heap->layout->facts[V8_TYPE_NO_STRING] || heap_string(heap, name, out->file);
}

bool js_shared_read(const struct heap *heap, uint64_t shared, struct js_function *out)
{
	bool named, placed;

	memset(out, 0, sizeof(*out));
	out->shared = shared;
	if (!heap_is(heap, shared, V8_TYPE_SHARED))
		return false;
	named = read_name(heap, out); /* what does not depend on each other is asked for together */
	placed = read_script(heap, out);
	return named && placed;
}

bool js_function_shared(const struct heap *heap, uint64_t function, uint64_t *out)
{
	return heap_is_function(heap, function) && heap_read(heap, function, V8_FUNCTION_SHARED, out);
}
