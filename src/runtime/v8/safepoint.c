/* SPDX-License-Identifier: MIT */
#include "runtime/v8/safepoint.h"

#include <endian.h>

enum {
	HALF = 4,
	MAX_ENTRIES = 1 << 16,
	MAX_ENTRY = 4 * 4 + 1, /* bytes: four numbers, and in Maglev's code a byte */
};

/* How the entries of a table are made, by its header. */
struct shape {
	uint32_t len;
	uint8_t pc, deopt, registers; /* bytes of each number */
	uint8_t size;                 /* of an entry */
	uint64_t first;               /* address */
};

static uint32_t take_number(const uint8_t **p, uint8_t size)
{
	uint32_t value = 0;

	for (uint8_t i = 0; i < size; i++)
		value |= (uint32_t)*(*p)++ << 8 * i;
	return value;
}

static bool read_shape(const struct heap *heap, const struct v8_code *code, struct shape *out)
{
	uint64_t at = code->start + code->size + code->tables->safepoint_skip;
	uint32_t header[2], how;

	if (at % HALF || !pages_read(heap->pages, at, header, sizeof(header)))
		return false;
	how = le32toh(header[1]);
	*out = (struct shape){.len = le32toh(header[0]), .registers = how >> 1 & 7, .pc = how >> 4 & 7, .deopt = how >> 7 & 7};
	out->size = (uint8_t)(2 * out->pc + out->deopt + out->registers + (code->tier == V8_MAGLEV));
	out->first = at + sizeof(header) + (code->tier == V8_MAGLEV ? code->tables->maglev_skip : 0);
	return how & 1 && out->len <= MAX_ENTRIES && out->pc && out->pc <= HALF && out->deopt && out->deopt <= HALF &&
	       out->registers <= HALF;
}

/* Numbers of what there may be none of are one more than they are. */
static bool read_entry(const struct heap *heap, const struct shape *shape, uint32_t i, struct v8_safepoint *out)
{
	uint8_t bytes[MAX_ENTRY];
	const uint8_t *p = bytes;

	if (!pages_read(heap->pages, shape->first + (uint64_t)i * shape->size, bytes, shape->size))
		return false;
	out->pc = take_number(&p, shape->pc);
	out->deopt = take_number(&p, shape->deopt) - 1;
	out->trampoline = take_number(&p, shape->pc) - 1;
	return true;
}

bool v8_safepoint_find(const struct heap *heap, const struct v8_code *code, uint64_t pc, struct v8_safepoint *out)
{
	uint64_t offset = pc - code->start;
	struct shape shape;

	if (!read_shape(heap, code, &shape))
		return false;
	pages_foresee(heap->pages, shape.first, (uint64_t)shape.len * shape.size);
	for (uint32_t i = 0; i < shape.len; i++) {
		if (!read_entry(heap, &shape, i, out) || out->pc > code->size)
			return false;
		if (out->pc == offset || out->trampoline == offset)
			return out->deopt != UINT32_MAX;
	}
	return false;
}
