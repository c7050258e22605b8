/* SPDX-License-Identifier: MIT */
#include "runtime/python/code.h"

#include <string.h>

#include "runtime/python/lines.h"
#include "runtime/python/strings.h"

enum {
	OBJECT_TYPE = 8,
	OBJECT_SIZE = 16,
	FIRST_WITH_UNITS = 10, /* f_lasti counts units of two bytes since then */
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

const struct python_code *python_codes_find(struct python_codes *codes, uint64_t address)
{
	bool created;
	uint64_t *slot = u64map_put(&codes->by_address, address, &created);
	struct python_code *code = slot && created ? arena_alloc(codes->arena, sizeof(*code)) : NULL;

	if (!slot)
		return NULL;
	if (!created)
		return (const struct python_code *)(uintptr_t)*slot;
	*slot = (uintptr_t)code;
	if (code)
		read_code(codes, address, code);
	return code;
}

bool python_codes_knows(const struct python_codes *codes, uint64_t address)
{
	return u64map_find(&codes->by_address, address);
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
