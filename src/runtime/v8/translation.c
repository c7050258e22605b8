/* SPDX-License-Identifier: MIT */
#include "runtime/v8/translation.h"

#include <string.h>

#include "runtime/v8/bytes.h"

enum {
	MAX_STEPS = 1 << 14, /* instructions that are passed over, at most */
	FIRST_OPERANDS = 3,
	MAX_OPERANDS = 9, /* a digit tells how many */
};

struct reader {
	const struct v8_tables *tables;
	struct v8_bytes own;
	struct v8_bytes other; /* in the translation that is repeated */
	bool has_other;
	uint32_t repeats; /* instructions that are still to be taken from there, with the last one */
	uint32_t passed;  /* own ones since */
	uint32_t steps;
	uint32_t functions;   /* frames that there are */
	bool awaits_function; /* the first value of a frame is its function */
};

/* The lowest bit is the sign. */
static int32_t to_signed(uint32_t bits)
{
	return bits & 1 ? -(int32_t)(bits >> 1) : (int32_t)(bits >> 1);
}

static uint32_t operand_count(const struct v8_tables *tables, uint32_t opcode)
{
	return (uint32_t)(tables->operands[opcode] - '0');
}

static bool is_one_of(const uint8_t pair[2], uint32_t opcode)
{
	return opcode == pair[0] || opcode == pair[1];
}

/* Where there is nothing to repeat, instructions are numbers as all others. */
static uint32_t take_opcode(const struct reader *r, struct v8_bytes *p)
{
	if (r->tables->repeat)
		return v8_bytes_take(p);
	return (uint32_t)to_signed(v8_bytes_number(p));
}

static uint32_t take_other_opcode(struct reader *r)
{
	uint32_t opcode = take_opcode(r, &r->other);

	if (opcode >= r->tables->repeat)
		r->other.bad = true;
	return r->other.bad ? 0 : opcode;
}

static void pass_other(struct reader *r)
{
	uint32_t operands = operand_count(r->tables, take_other_opcode(r));

	for (uint32_t i = 0; i < operands; i++)
		v8_bytes_number(&r->other);
}

/* What the other translation has besides is passed over first. */
static uint32_t begin_repeating(struct reader *r, uint32_t n)
{
	if (!n || !r->has_other)
		r->own.bad = true;
	r->repeats = n;
	for (; r->passed && !r->other.bad; r->passed--)
		pass_other(r);
	return take_other_opcode(r);
}

/* A byte that is no instruction stands for that many repeated ones. */
static uint32_t next_opcode(struct reader *r)
{
	const uint32_t count = (uint32_t)strlen(r->tables->operands);
	uint32_t opcode;

	if (++r->steps > MAX_STEPS)
		r->own.bad = true;
	if (r->repeats && --r->repeats)
		return take_other_opcode(r);
	opcode = take_opcode(r, &r->own);
	if (r->tables->repeat && opcode >= count)
		return begin_repeating(r, opcode - count);
	if (r->tables->repeat && opcode == r->tables->repeat)
		return begin_repeating(r, v8_bytes_number(&r->own));
	r->passed++;
	if (opcode >= count || is_one_of(r->tables->begin, opcode))
		r->own.bad = true;
	return r->own.bad ? 0 : opcode;
}

static bool is_bad(const struct reader *r)
{
	return r->own.bad || r->other.bad;
}

static bool begin_other(struct reader *r, uint64_t bytes, uint32_t start, uint32_t distance)
{
	if (!distance)
		return true;
	r->has_other = distance <= start &&
		       v8_bytes_begin(r->own.heap, bytes, V8_ARRAY_DATA, start - distance, &r->other);
	r->passed = 1; /* its beginning */
	return r->has_other;
}

/* How many frames of functions there are. */
static bool begin(struct reader *r, uint64_t bytes)
{
	uint32_t start = r->own.at, operands[FIRST_OPERANDS];
	int32_t frames, functions;

	if (!is_one_of(r->tables->begin, take_opcode(r, &r->own)))
		return false;
	for (size_t i = 0; i < FIRST_OPERANDS; i++)
		operands[i] = v8_bytes_number(&r->own);
	if (!r->tables->has_update_count && !begin_other(r, bytes, start, operands[0]))
		return false;
	frames = to_signed(operands[r->tables->has_update_count ? 0 : 1]);
	functions = to_signed(operands[r->tables->has_update_count ? 1 : 2]);
	r->functions = (uint32_t)functions;
	return !is_bad(r) && functions > 0 && functions <= TRANSLATION_FRAMES && frames >= functions;
}

static void take_frame(struct reader *r, const int32_t operands[MAX_OPERANDS], bool is_builtin, struct v8_translation *out)
{
	out->data[out->len++] = (struct v8_translated){
		.offset = is_builtin ? 0 : operands[0],
		.shared = operands[1],
		.bytecode = operands[2],
		.is_builtin = is_builtin,
		.function = -1,
	};
	r->awaits_function = is_builtin;
}

/* The next instruction, which is a frame of a function or something else. */
static void take_next(struct reader *r, struct v8_translation *out)
{
	uint32_t opcode = next_opcode(r), n = operand_count(r->tables, opcode);
	int32_t operands[MAX_OPERANDS] = {0};
	bool is_builtin = is_one_of(r->tables->builtin, opcode);

	for (uint32_t i = 0; i < n; i++)
		operands[i] = to_signed(v8_bytes_number(r->repeats ? &r->other : &r->own));
	if (r->awaits_function && opcode == r->tables->literal)
		out->data[out->len - 1].function = operands[0];
	r->awaits_function = false;
	if (!is_bad(r) && out->len < r->functions && (is_builtin || is_one_of(r->tables->interpreted, opcode)))
		take_frame(r, operands, is_builtin, out);
}

bool v8_translation_read(const struct heap *heap, const struct v8_tables *tables, uint64_t bytes, uint32_t at,
			 struct v8_translation *out)
{
	struct reader r = {.tables = tables};

	out->len = 0;
	if (!v8_bytes_begin(heap, bytes, V8_ARRAY_DATA, at, &r.own) || !begin(&r, bytes))
		return false;
	while (!is_bad(&r) && (out->len < r.functions || r.awaits_function))
		take_next(&r, out);
	return !is_bad(&r);
}
