/* SPDX-License-Identifier: MIT */
#include "runtime/python/code.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "runtime/python/lines.h"
#include "runtime/python/strings.h"

enum {
	OBJECT_TYPE = 8,
	OBJECT_SIZE = 16,
	FIRST_WITH_UNITS = 10, /* f_lasti counts units of two bytes since then */
	FIRST_WITH_NUMBER = 12, /* each code object has a number, co_version */
	MAX_HEAD = 256, /* of a code object: what tells it from others is in there */
	MAX_LINES_BYTES = 32 << 20, /* of all line tables */
};

void python_codes_deinit(struct python_codes *codes)
{
	u64map_deinit(&codes->by_address);
}

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static const char *read_string(struct python_codes *codes, uint64_t code, enum python_word word)
{
	uint64_t object;

	if (!codes->layout->at[word] || !read_u64(codes->mem, code + codes->layout->at[word], &object) || !object)
		return NULL;
	return python_string(codes->layout, codes->mem, object, codes->arena);
}

/* In the object itself, whose size is then in units of two bytes; or, up to 3.10, in another one. */
static bool read_extent(struct python_codes *codes, uint64_t address, struct python_code *code)
{
	const struct python_layout *layout = codes->layout;
	uint64_t object;

	if (layout->at[PY_FRAMES] == PY_FRAMES_OBJECTS)
		return read_u64(codes->mem, address + layout->at[PY_CODE_BYTES], &object) &&
		       read_u64(codes->mem, object + OBJECT_SIZE, &code->size);
	code->start = address + layout->at[PY_CODE_BYTES];
	if (!read_u64(codes->mem, address + OBJECT_SIZE, &code->size) || code->size > UINT32_MAX)
		return false;
	code->size *= 2;
	return true;
}

static void read_code(struct python_codes *codes, uint64_t address, struct python_code *code)
{
	const struct python_layout *layout = codes->layout;
	uint64_t type, lines;

	if (!read_u64(codes->mem, address + OBJECT_TYPE, &type) || type != layout->at[PY_CODE_TYPE] ||
	    !mem_read_exact(codes->mem, address + layout->at[PY_CODE_FIRSTLINE], &code->first_line, sizeof(code->first_line)) ||
	    !read_extent(codes, address, code))
		return;
	code->valid = true;
	if (code->first_line > INT32_MAX)
		code->first_line = 0;
	code->name = read_string(codes, address, PY_CODE_QUALNAME);
	if (!code->name)
		code->name = read_string(codes, address, PY_CODE_NAME);
	code->file = read_string(codes, address, PY_CODE_FILENAME);
	if (codes->lines_bytes > MAX_LINES_BYTES || !read_u64(codes->mem, address + layout->at[PY_CODE_LINES], &lines) ||
	    !python_bytes(codes->mem, lines, codes->arena, &code->lines, &code->nlines))
		code->lines = NULL;
	codes->lines_bytes += code->lines ? code->nlines : 0;
}

/*
 * What tells a code object from another that was at the same address, the name first; and then the word before its variables, whose
 * second half is a number that no other has, since 3.12.
 */
static const enum python_word version_words[] = {PY_CODE_NAME, PY_CODE_FIRSTLINE, PY_CODE_FILENAME, PY_CODE_LINES};

static_assert(sizeof(version_words) / sizeof(version_words[0]) + 1 == OFFCPU_PYTHON_WORDS, "BPF reads as many");

static uint64_t version_word(const struct python_layout *layout, size_t i)
{
	return (i + 1 < OFFCPU_PYTHON_WORDS ? layout->at[version_words[i]] : layout->at[PY_CODE_VARIABLES] - 1) & ~UINT64_C(7);
}

void python_code_describe(const struct python_layout *layout, struct offcpu_python *out)
{
	uint64_t from = UINT64_MAX, end = 0;

	for (size_t i = 0; i < OFFCPU_PYTHON_WORDS; i++) {
		uint64_t at = version_word(layout, i);

		from = at < from ? at : from;
		end = at + 8 > end ? at + 8 : end;
	}
	out->code_from = (uint32_t)from;
	out->code_size = (uint32_t)(end - from);
	out->by_name = python_minor(layout) < FIRST_WITH_NUMBER;
	for (size_t i = 0; i < OFFCPU_PYTHON_WORDS; i++)
		out->code_words[i] = (uint32_t)(version_word(layout, i) - from);
}

/*
 * Whether the first word of an object counts references to it. What was freed keeps its other words until the memory is used
 * again, but begins with the address of more free memory, or 0. Counts have 32 bits, and flags are above bit 48, since 3.14.
 */
static bool is_alive(uint64_t first)
{
	return (uint32_t)first && !(first >> 32 & 0xffff);
}

uint32_t python_code_version(const struct python_layout *layout, struct mem *mem, uint64_t address)
{
	uint8_t bytes[MAX_HEAD];
	uint64_t words[OFFCPU_PYTHON_WORDS], count, type, end = 0, hash = 0;
	uint32_t version;

	for (size_t i = 0; i < OFFCPU_PYTHON_WORDS; i++)
		end = version_word(layout, i) + 8 > end ? version_word(layout, i) + 8 : end;
	if (end > MAX_HEAD || !mem_read_exact(mem, address, bytes, end))
		return 0;
	memcpy(&count, bytes, sizeof(count));
	memcpy(&type, bytes + OBJECT_TYPE, sizeof(type));
	for (size_t i = 0; i < OFFCPU_PYTHON_WORDS; i++)
		memcpy(&words[i], bytes + version_word(layout, i), sizeof(words[i]));
	if (!is_alive(count) || type != layout->at[PY_CODE_TYPE] ||
	    (python_minor(layout) < FIRST_WITH_NUMBER && !read_u64(mem, words[0] + OFFCPU_PYTHON_STR_HASH, &hash)))
		return 0;
	version = offcpu_python_version(0, hash);
	for (size_t i = 0; i < OFFCPU_PYTHON_WORDS; i++)
		version = offcpu_python_version(version, words[i]);
	return version;
}

static uint64_t key_of(uint64_t address, uint32_t version)
{
	return version ? hash_u64(hash_u64(HASH_SEED, address), version) : address;
}

const struct python_code *python_codes_find(struct python_codes *codes, uint64_t address, uint32_t version)
{
	bool created;
	uint64_t *slot = u64map_put(&codes->by_address, key_of(address, version), &created);
	struct python_code *code = slot && created ? arena_alloc(codes->arena, sizeof(*code)) : NULL;

	if (!slot)
		return NULL;
	if (!created)
		return (const struct python_code *)(uintptr_t)*slot;
	*slot = (uintptr_t)code;
	if (code && version && python_code_version(codes->layout, codes->mem, address) != version)
		code->gone = true;
	else if (code)
		read_code(codes, address, code);
	return code;
}

bool python_codes_knows(const struct python_codes *codes, uint64_t address, uint32_t version)
{
	return u64map_find(&codes->by_address, key_of(address, version));
}

bool python_codes_confirm(struct python_codes *codes, struct mem *fresh, uint64_t address, uint32_t version)
{
	const uint64_t *slot = u64map_find(&codes->by_address, key_of(address, version));
	struct python_code *code = slot ? (struct python_code *)(uintptr_t)*slot : NULL;

	if (!code || !version)
		return true;
	if (!code->confirmed && python_code_version(codes->layout, fresh, address) != version)
		*code = (struct python_code){.gone = true};
	code->confirmed = true;
	return !code->gone;
}

bool python_codes_give_up(struct python_codes *codes, uint64_t address, uint32_t version)
{
	struct python_code *code = arena_alloc(codes->arena, sizeof(*code));
	uint64_t *slot;
	bool created;

	if (!code)
		return false;
	code->gone = true;
	slot = u64map_put(&codes->by_address, key_of(address, version), &created);
	if (slot)
		*slot = (uintptr_t)code;
	return slot;
}

bool python_code_offset(const struct python_layout *layout, const struct python_code *code, uint64_t instr, int64_t *offset)
{
	if (layout->at[PY_FRAMES] == PY_FRAMES_OBJECTS)
		*offset = (int64_t)(int32_t)instr * (python_minor(layout) >= FIRST_WITH_UNITS ? 2 : 1);
	else
		*offset = (int64_t)(instr - code->start);
	if (*offset == -2 || *offset == -1) {
		*offset = -1;
		return true;
	}
	return *offset >= 0 && (uint64_t)*offset < code->size;
}

uint32_t python_code_line(const struct python_layout *layout, const struct python_code *code, int64_t offset)
{
	if (!code->lines)
		return 0;
	return python_line(python_minor(layout), code->lines, code->nlines, code->first_line, offset);
}

void python_code_name(const struct python_layout *layout, const struct python_code *code, uint64_t instr, struct frame *frame)
{
	int64_t offset;

	if (!code || !code->name)
		return;
	frame->symbol = code->name;
	frame->symbol_source = SYMBOL_RUNTIME;
	frame->file = code->file;
	if (python_code_offset(layout, code, instr, &offset))
		frame->line = python_code_line(layout, code, offset);
	if (!frame->line) { /* some instructions are of no line */
		frame->line = code->first_line;
		frame->line_kind = LINE_DEFINITION;
	}
}
