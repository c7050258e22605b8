/* SPDX-License-Identifier: MIT */
#include "runtime/v8/code.h"

#include <endian.h>

enum {
	TAG = 1,
	ALIGN = 32,               /* of instructions, at least */
	STREAM_CODE = 8,          /* field of a stream */
	INTERPRETER_BYTECODE = 8, /* of InterpreterData, */
	SHARED_DATA = 8,          /* and of a SharedFunctionInfo: its bytecode, or what has that */
	ADDRESS_BITS = 48,        /* of a process, at most */
	KIND = 0xf,               /* of a Code's flags */
	MAX_SIZE = 4 << 20,       /* of instructions */
	FIRST_WINDOW = 4 << 10,   /* bytes before an address where the object is looked for, */
	LAST_WINDOW = 256 << 10,  /* with four times as many each time */
};

static bool read_half(const struct heap *heap, uint64_t object, uint64_t offset, uint32_t *out)
{
	uint32_t half;

	if (!heap_is_object(object) || !pages_read(heap->pages, object - TAG + offset, &half, sizeof(half)))
		return false;
	*out = le32toh(half);
	return true;
}

/* Where the file tells a field's place, that counts. */
static uint64_t place_of(const struct heap *heap, enum v8_fact fact, uint16_t known)
{
	return v8_has(heap->layout, fact) ? heap->layout->facts[fact] : known;
}

static bool has_streams(const struct heap *heap)
{
	return v8_has(heap->layout, V8_TYPE_STREAM);
}

static bool read_tier(const struct heap *heap, struct v8_code *code)
{
	uint64_t baseline = heap->layout->facts[V8_KIND_BASELINE];
	uint32_t flags;

	if (!read_half(heap, code->object, place_of(heap, V8_CODE_FLAGS, code->tables->code_flags), &flags) ||
	    (flags & KIND) < baseline || (flags & KIND) > baseline + V8_TURBOFAN)
		return false;
	code->tier = (enum v8_tier)((flags & KIND) - baseline);
	return true;
}

static bool find_stream(const struct heap *heap, struct v8_code *code)
{
	uint64_t field = place_of(heap, V8_CODE_STREAM, code->tables->code_stream);

	return heap_read_at(heap, code->object, field, &code->stream) && heap_is(heap, code->stream, V8_TYPE_STREAM);
}

static bool read_code(const struct heap *heap, uint64_t object, struct v8_code *out)
{
	*out = (struct v8_code){.tables = v8_tables_find(heap->layout), .object = object, .stream = object};
	if (!out->tables || !v8_has(heap->layout, V8_STREAM_START) || !v8_has(heap->layout, V8_KIND_BASELINE) ||
	    !heap_is(heap, object, V8_TYPE_CODE) || !read_tier(heap, out))
		return false;
	if (has_streams(heap) && !find_stream(heap, out))
		return false;
	out->start = out->stream - TAG + heap->layout->facts[V8_STREAM_START];
	return read_half(heap, object, place_of(heap, V8_CODE_SIZE, out->tables->code_size), &out->size) &&
	       out->size <= MAX_SIZE && heap_read_at(heap, object, out->tables->code_data, &out->data) &&
	       heap_read_at(heap, object, out->tables->code_positions, &out->positions);
}

/* Whether an object that has instructions is there. *lacks: that may still turn out. */
static bool is_stream(const struct heap *heap, uint64_t stream, bool *lacks)
{
	bool lacked = heap->pages->lacks, is;

	heap->pages->lacks = false;
	is = heap_is(heap, stream, has_streams(heap) ? V8_TYPE_STREAM : V8_TYPE_CODE);
	*lacks = heap->pages->lacks;
	heap->pages->lacks |= lacked;
	return is;
}

static bool read_stream(const struct heap *heap, uint64_t stream, struct v8_code *out)
{
	uint64_t object = stream;

	return (!has_streams(heap) || heap_read_at(heap, stream, STREAM_CODE, &object)) &&
	       read_code(heap, object, out) && out->stream == stream;
}

enum search { FOUND, GO_ON, END };

/*
 * Down from `from` to `to`: the first object that may have instructions. Instructions themselves are hardly ever what could
 * be the address of an object's map.
 */
static enum search search(const struct heap *heap, uint64_t from, uint64_t to, uint64_t *stream)
{
	for (uint64_t start = from; start > to; start -= ALIGN) {
		uint64_t at = start - heap->layout->facts[V8_STREAM_START], map;
		bool lacks;

		if (!pages_read_word(heap->pages, at, &map))
			return END;
		if (!heap_is_object(map) || map >> ADDRESS_BITS)
			continue;
		*stream = at + TAG;
		if (is_stream(heap, *stream, &lacks))
			return FOUND;
		if (lacks)
			return END;
	}
	return GO_ON;
}

bool v8_code_find(const struct heap *heap, uint64_t pc, struct v8_code *out)
{
	uint64_t from = pc & ~(uint64_t)(ALIGN - 1), stream;
	enum search found = GO_ON;

	if (!v8_tables_find(heap->layout) || !v8_has(heap->layout, V8_STREAM_START))
		return false;
	for (uint64_t window = FIRST_WINDOW; found == GO_ON && window <= LAST_WINDOW && window < pc; window *= 4) {
		pages_foresee(heap->pages, pc - window, window);
		found = search(heap, from, (pc - window) & ~(uint64_t)(ALIGN - 1), &stream);
		from = (pc - window) & ~(uint64_t)(ALIGN - 1);
	}
	return found == FOUND && read_stream(heap, stream, out) && pc >= out->start && pc - out->start <= out->size;
}

/* A BytecodeArray is in an object of its own where it has instructions of its own to be interpreted by. */
static bool read_bytecode(const struct heap *heap, uint64_t value, uint64_t *out)
{
	if (heap_is(heap, value, V8_TYPE_INTERPRETER_DATA) && !heap_read_at(heap, value, INTERPRETER_BYTECODE, &value))
		return false;
	*out = value;
	return heap_is(heap, value, V8_TYPE_BYTECODE);
}

bool v8_code_bytecode(const struct heap *heap, const struct v8_code *code, uint64_t *bytecode)
{
	return code->tier == V8_BASELINE && read_bytecode(heap, code->data, bytecode);
}

bool v8_code_of_shared(const struct heap *heap, uint64_t shared, uint64_t *bytecode)
{
	struct v8_code code;
	uint64_t value;

	if (!heap_read_at(heap, shared, SHARED_DATA, &value))
		return false;
	if (heap_is(heap, value, V8_TYPE_CODE))
		return read_code(heap, value, &code) && v8_code_bytecode(heap, &code, bytecode);
	return read_bytecode(heap, value, bytecode);
}
