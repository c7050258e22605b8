/* SPDX-License-Identifier: MIT */
#include "runtime/v8/deopt.h"

#include "runtime/v8/function.h"

enum {
	WORD = 8,
	WEAK = 2, /* of a reference */
	WRAPPER_SHARED = 8,
	TRANSLATION = 0,   /* slots of DeoptimizationData */
	ENTRY_WORDS = 3,   /* of an entry: the bytecode, where its translation begins, where in the code it is */
	ENTRY_TRANSLATION = 1,
	ENTRY_PC = 2,
};

struct data {
	const struct heap *heap;
	const struct v8_tables *tables;
	uint64_t object;
	uint32_t len;
	uint64_t literals, bytecodes;
};

/* Of an array that has so many elements. */
static bool read_element(const struct heap *heap, uint64_t array, uint32_t len, uint32_t i, uint64_t *out)
{
	return i < len && heap_read_at(heap, array, heap->layout->facts[V8_ARRAY_DATA] + (uint64_t)i * WORD, out);
}

static bool read_number(const struct data *data, uint32_t slot, uint32_t *out)
{
	uint64_t value;

	if (!read_element(data->heap, data->object, data->len, slot, &value) || !heap_is_small(value) || heap_small(value) < 0)
		return false;
	*out = (uint32_t)heap_small(value);
	return true;
}

/* Newer versions have it in an object of its own. */
static bool is_of(const struct data *data, uint64_t shared)
{
	uint64_t value;

	if (!read_element(data->heap, data->object, data->len, data->tables->deopt_shared, &value))
		return false;
	if (heap_is(data->heap, value, V8_TYPE_SHARED_WRAPPER) && !heap_read_at(data->heap, value, WRAPPER_SHARED, &value))
		return false;
	return value == shared;
}

/* Their numbers, of both kinds, are the last before them. */
static bool has_entry(const struct data *data, uint32_t i)
{
	uint32_t eager, lazy, first = data->tables->deopt_first;

	return read_number(data, first - 2u, &eager) && read_number(data, first - 1u, &lazy) && i < data->len &&
	       (uint64_t)eager + lazy == (data->len - first) / ENTRY_WORDS && (data->len - first) % ENTRY_WORDS == 0 &&
	       i < eager + lazy;
}

static bool read_data(const struct heap *heap, const struct v8_code *code, uint64_t shared, struct data *out)
{
	const struct v8_tables *tables = code->tables;

	*out = (struct data){.heap = heap, .tables = tables, .object = code->data};
	return heap_is(heap, out->object, tables->type_deopt) && heap_length(heap, out->object, &out->len) &&
	       out->len >= tables->deopt_first && is_of(out, shared) &&
	       read_element(heap, out->object, out->len, tables->deopt_literals, &out->literals) &&
	       heap_is(heap, out->literals, tables->type_literals) &&
	       (!tables->deopt_bytecodes ||
		(read_element(heap, out->object, out->len, tables->deopt_bytecodes, &out->bytecodes) &&
		 heap_is(heap, out->bytecodes, tables->type_deopt)));
}

static bool read_literal(const struct data *data, uint64_t array, int32_t i, uint64_t *out)
{
	uint32_t len;

	return i >= 0 && heap_length(data->heap, array, &len) && read_element(data->heap, array, len, (uint32_t)i, out);
}

static bool is_within(const struct heap *heap, uint64_t bytecode, int64_t offset)
{
	uint32_t len;

	return heap_is(heap, bytecode, V8_TYPE_BYTECODE) && heap_length(heap, bytecode, &len) && offset >= -1 &&
	       offset < len;
}

/* The function, where it is a literal: that is weak. */
static bool read_builtin(const struct data *data, const struct v8_translated *frame, struct v8_call *call)
{
	uint64_t function;

	return frame->function < 0 || (read_literal(data, data->literals, frame->function, &function) &&
				       js_function_shared(data->heap, function & ~(uint64_t)WEAK, &call->shared));
}

static bool read_bytecode(const struct data *data, const struct v8_translated *frame, struct v8_call *call)
{
	return (data->tables->deopt_bytecodes ? read_literal(data, data->bytecodes, frame->bytecode, &call->bytecode)
					      : v8_code_of_shared(data->heap, call->shared, &call->bytecode)) &&
	       is_within(data->heap, call->bytecode, call->offset);
}

/* What a frame of the translation stands for. */
static bool read_call(const struct data *data, const struct v8_translated *frame, struct v8_call *out)
{
	*out = (struct v8_call){.offset = frame->offset, .is_builtin = frame->is_builtin};
	return read_literal(data, data->literals, frame->shared, &out->shared) &&
	       heap_is(data->heap, out->shared, V8_TYPE_SHARED) &&
	       (frame->is_builtin ? read_builtin(data, frame, out) : read_bytecode(data, frame, out));
}

/* What does not depend on each other is asked for together. */
static bool read_calls(const struct data *data, const struct v8_translation *translation, struct v8_calls *out)
{
	bool ok = true;

	for (size_t i = 0; i < translation->len; i++)
		ok = read_call(data, &translation->data[i], &out->data[translation->len - 1 - i]) && ok;
	out->len = translation->len;
	return ok;
}

bool v8_deopt_find(const struct heap *heap, const struct v8_code *code, const struct v8_safepoint *place, uint64_t shared,
		   struct v8_calls *out)
{
	struct v8_translation translation;
	uint32_t entry = code->tables->deopt_first + ENTRY_WORDS * place->deopt, at, pc;
	struct data data;
	uint64_t bytes;

	return read_data(heap, code, shared, &data) && has_entry(&data, place->deopt) &&
	       read_number(&data, entry + ENTRY_PC, &pc) && (pc == place->pc || pc == place->trampoline) &&
	       read_number(&data, entry + ENTRY_TRANSLATION, &at) &&
	       read_element(heap, data.object, data.len, TRANSLATION, &bytes) &&
	       heap_is(heap, bytes, code->tables->type_translation) &&
	       v8_translation_read(heap, code->tables, bytes, at, &translation) && read_calls(&data, &translation, out) &&
	       out->data[out->len - 1].shared == shared;
}

bool v8_deopt_is_dropped(const struct heap *heap, const struct v8_code *code)
{
	uint32_t len;

	return heap_is(heap, code->data, code->tables->type_deopt) && heap_length(heap, code->data, &len) && !len;
}
