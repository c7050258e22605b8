/* SPDX-License-Identifier: MIT */
#include "runtime/v8/baseline.h"

#include <string.h>

#include "runtime/v8/bytes.h"

enum {
	MAX_BYTECODE = 256 << 10,
	PREFIXES = 4, /* the first bytecodes widen the operands of the next, by turns twice and four times */
};

static void pass(struct v8_bytes *bytes, uint32_t n)
{
	if (n > bytes->len - bytes->at)
		bytes->bad = true;
	else
		bytes->at += n;
}

static void pass_bytecode(const struct v8_tables *tables, struct v8_bytes *bytes)
{
	uint32_t opcode = v8_bytes_take(bytes), scale = 1;

	if (opcode < PREFIXES) {
		scale = opcode & 1 ? 4 : 2;
		opcode = v8_bytes_take(bytes);
	}
	if (opcode >= strlen(tables->bytes)) {
		bytes->bad = true;
		return;
	}
	pass(bytes, (uint32_t)(tables->bytes[opcode] - '0') + scale * (uint32_t)(tables->scaled[opcode] - '0'));
}

/* All of both is looked at: they must end together. */
bool v8_baseline_find(const struct heap *heap, const struct v8_code *code, uint64_t bytecode, uint64_t pc, int64_t *out)
{
	struct v8_bytes bytes, table;
	uint64_t end;
	bool found;

	if (!heap_is(heap, bytecode, V8_TYPE_BYTECODE) || !heap_is_bytes(heap, code->positions) ||
	    !v8_bytes_begin(heap, bytecode, V8_BYTECODE_DATA, 0, &bytes) || bytes.len > MAX_BYTECODE ||
	    !v8_bytes_begin(heap, code->positions, V8_ARRAY_DATA, 0, &table))
		return false;
	*out = -1;
	end = code->start + v8_bytes_number(&table);
	found = pc <= end;
	while (!bytes.bad && !table.bad && bytes.at < bytes.len) {
		uint32_t at = bytes.at;

		pass_bytecode(code->tables, &bytes);
		end += v8_bytes_number(&table);
		if (!found && pc <= end)
			*out = at;
		found = found || pc <= end;
	}
	return found && !bytes.bad && !table.bad && table.at == table.len && end <= code->start + code->size;
}
