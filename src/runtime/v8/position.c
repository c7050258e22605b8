/* SPDX-License-Identifier: MIT */
#include "runtime/v8/position.h"

#include <string.h>

#include "base/hash.h"

enum {
	TAG = 1,
	MAX_TABLE = 64 << 10,
	MAX_SOURCE = 4 << 20, /* bytes of a script that are read for its lines */
	CHUNK = 512,
	SAMPLES = 5,
	SAMPLE = 32,           /* bytes of each */
	MAX_SOURCES = 1 << 12, /* of which something is kept */
	MAX_PIECES = 1 << 20,
	NEWEST = 13, /* of V8: of a later one the table was found in another place */
	MORE = 0x80, /* of a byte: another follows */
	TABLE_WITH_WRAPPER = 24,
	TABLE = 32,
	ENTRY = -1, /* the function's entry, before its first bytecode: from there the first pair is counted */
};

static bool read_number(struct cursor *c, int64_t *out)
{
	uint64_t bits = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (c->bad)
			return false;
		bits |= (uint64_t)(byte & ~MORE) << shift;
		if (byte & MORE)
			continue;
		*out = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
		return true;
	}
	return false;
}

/* A pair of an expression, not of a statement, has the complement of how far it is. What it tells is the same. */
bool position_find(struct cursor *table, int64_t offset, uint32_t *out)
{
	int64_t code = ENTRY, position = 0, best = -1;

	while (cursor_left(table)) {
		int64_t code_step, position_step;

		if (!read_number(table, &code_step) || !read_number(table, &position_step))
			return false;
		if (code_step < 0)
			code_step = -(code_step + 1);
		if (code_step > INT32_MAX || position_step > INT32_MAX || position_step < INT32_MIN * INT64_C(2))
			return false;
		code += code_step;
		position += position_step;
		if (code > offset)
			break;
		best = position;
	}
	/* Its lowest bit tells what kind it is, and 0 stands for none. */
	if (best < 0 || best >> 1 < 1 || best >> 1 > UINT32_MAX)
		return false;
	*out = (uint32_t)((best >> 1) - 1);
	return true;
}

bool position_of_bytecode(const struct heap *heap, uint64_t bytecode, int64_t at, uint32_t *out)
{
	const struct v8_layout *layout = heap->layout;
	uint8_t bytes[MAX_TABLE];
	uint32_t len, size;
	uint64_t table;
	struct cursor c;

	if (layout->facts[V8_MAJOR] > NEWEST || !heap_is(heap, bytecode, V8_TYPE_BYTECODE) ||
	    !heap_length(heap, bytecode, &size) || at < ENTRY || at >= size ||
	    !heap_read_at(heap, bytecode, v8_has(layout, V8_BYTECODE_WRAPPER) ? TABLE_WITH_WRAPPER : TABLE, &table) ||
	    !heap_is_bytes(heap, table) || !heap_length(heap, table, &len) || len > MAX_TABLE ||
	    !pages_read(heap->pages, table - TAG + layout->facts[V8_ARRAY_DATA], bytes, len))
		return false;
	c = cursor_init(bytes, len);
	return position_find(&c, at, out);
}

static void count_unit(struct line_count *count, uint16_t unit)
{
	if (unit == '\n' && count->after_return) {
		count->after_return = false;
		return;
	}
	count->after_return = unit == '\r';
	count->line += unit == '\n' || unit == '\r' || unit == 0x2028 || unit == 0x2029;
}

static bool count_piece(const struct heap *heap, const struct heap_text *text, uint64_t from, size_t len,
			struct line_count *count)
{
	uint8_t bytes[CHUNK];

	if (!pages_read(heap->pages, text->address + from, bytes, len))
		return false;
	for (size_t i = 0; i < len; i += 1 + text->two_bytes)
		count_unit(count, text->two_bytes ? (uint16_t)(bytes[i] | bytes[i + 1] << 8) : bytes[i]);
	return true;
}

void line_index_deinit(struct line_index *index)
{
	for (size_t i = 0; i < index->sources.len; i++)
		vec_deinit(&index->sources.data[i].before);
	vec_deinit(&index->sources);
	u64map_deinit(&index->by_address);
}

/* Of its beginning, middle and end. */
static bool take_sample(const struct heap *heap, const struct heap_text *text, uint64_t *out)
{
	const uint64_t size = (uint64_t)text->len << text->two_bytes;

	*out = hash_u64(HASH_SEED, text->two_bytes);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint8_t bytes[SAMPLE];
		uint64_t at = size > SAMPLE ? (size - SAMPLE) / (SAMPLES - 1) * i : 0;

		if (!pages_read(heap->pages, text->address + at, bytes, size < SAMPLE ? (size_t)size : SAMPLE))
			return false;
		*out = hash_bytes(*out, bytes, size < SAMPLE ? (size_t)size : SAMPLE);
	}
	return true;
}

/* What is known of a source; NULL: nothing may be kept of it. */
static struct counted_source *find_counted(const struct heap *heap, const struct heap_text *text)
{
	struct line_index *index = heap->lines;
	struct counted_source *source;
	uint64_t sample, *slot;
	bool created;

	if (!index || index->pieces >= MAX_PIECES || !take_sample(heap, text, &sample))
		return NULL;
	slot = u64map_put(&index->by_address, text->address, &created);
	if (!slot)
		return NULL;
	source = *slot ? &index->sources.data[*slot - 1] : NULL;
	if (source && source->len == text->len && source->sample == sample)
		return source;
	if (source) {
		index->pieces -= source->before.len;
		source->before.len = 0;
	} else {
		if (index->sources.len >= MAX_SOURCES || !vec_push(&index->sources, (struct counted_source){0}))
			return NULL;
		*slot = index->sources.len;
		source = &index->sources.data[*slot - 1];
	}
	source->sample = sample;
	source->len = text->len;
	return source;
}

/* The count before the piece that has this byte, as far as there is memory for it. *at: where that piece begins. */
static struct line_count find_count(const struct heap *heap, const struct heap_text *text, uint64_t byte, uint64_t *at)
{
	struct counted_source *source = find_counted(heap, text);
	struct line_count count = {.line = 1};

	*at = 0;
	if (!source)
		return count;
	if (!source->before.len && vec_push(&source->before, count))
		heap->lines->pieces++;
	while (source->before.len && source->before.len <= byte / CHUNK) {
		count = source->before.data[source->before.len - 1];
		if (!count_piece(heap, text, (source->before.len - 1) * CHUNK, CHUNK, &count) || !vec_push(&source->before, count))
			break;
		heap->lines->pieces++;
	}
	if (!source->before.len)
		return count;
	*at = byte / CHUNK < source->before.len ? byte / CHUNK : source->before.len - 1;
	count = source->before.data[*at];
	*at *= CHUNK;
	return count;
}

bool position_line(const struct heap *heap, uint64_t source, uint32_t position, uint32_t *out)
{
	struct line_count count;
	struct heap_text text;
	uint64_t size, done;

	if (!heap_flat_text(heap, source, &text) || position > text.len)
		return false;
	size = (uint64_t)position << text.two_bytes;
	if (size > MAX_SOURCE)
		return false;
	pages_foresee(heap->pages, text.address, size);
	count = find_count(heap, &text, size, &done);
	for (; done < size; done += CHUNK)
		if (!count_piece(heap, &text, done, size - done < CHUNK ? (size_t)(size - done) : CHUNK, &count))
			return false;
	*out = count.line;
	return true;
}
