/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/method.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot/symbol.h"

enum {
	LAST_OF_UNSIGNED5 = 192, /* from this on, a byte is followed by another */
	MAX_UNSIGNED5 = 5,
	MAX_LINES = 64 << 10,
	HAS_LINES = 1, /* in ConstMethod's flags */
	ACC_NATIVE = 0x100,
	EXCLUDES_ZERO_SINCE = 20,
};

uint32_t unsigned5_read(struct cursor *c, bool excludes_zero)
{
	uint32_t sum = 0;

	for (int i = 0; i < MAX_UNSIGNED5; i++) {
		uint8_t byte = cursor_u8(c);

		if (c->bad)
			return 0;
		if (excludes_zero && !byte) {
			cursor_fail(c);
			return 0;
		}
		sum += (uint32_t)(byte - excludes_zero) << 6 * i;
		if (byte < LAST_OF_UNSIGNED5)
			break;
	}
	return sum;
}

int32_t unsigned5_read_signed(struct cursor *c, bool excludes_zero)
{
	uint32_t value = unsigned5_read(c, excludes_zero);

	return (int32_t)(value >> 1 ^ -(value & 1));
}

uint32_t line_table_find(struct cursor *table, bool excludes_zero, uint32_t bci)
{
	uint32_t at = 0, line = 0, best = 0, best_line = 0;

	for (;;) {
		uint8_t byte = cursor_u8(table);

		if (!byte || table->bad)
			return best_line;
		if (byte == 0xff) {
			at += (uint32_t)unsigned5_read_signed(table, excludes_zero);
			line += (uint32_t)unsigned5_read_signed(table, excludes_zero);
			if (table->bad)
				return best_line;
		} else {
			at += byte >> 3;
			line += byte & 7;
		}
		if (at == bci)
			return line;
		if (at < bci && at >= best) {
			best = at;
			best_line = line;
		}
	}
}

void methods_init(struct methods *methods, const struct layout *layout, struct pages *pages, struct arena *arena)
{
	*methods = (struct methods){.layout = layout, .pages = pages, .arena = arena};
}

void methods_deinit(struct methods *methods)
{
	u64map_deinit(&methods->known);
}

static bool get(const struct methods *m, uint64_t base, enum hotspot_fact fact, uint64_t *out)
{
	return layout_read(m->layout, m->pages, base, fact, out);
}

/*
 * As the virtual machine prints it: packages with dots. What it makes of a lambda has a number after a '+', for which it
 * prints a '/'.
 */
static void spell_class(struct symbol_text *class)
{
	for (size_t i = 0; i < class->len; i++)
		if (class->bytes[i] == '/')
			class->bytes[i] = '.';
		else if (class->bytes[i] == '+' && strncmp(class->bytes + i, "+0x", 3) == 0)
			class->bytes[i] = '/';
}

static bool read_file_index(const struct methods *m, uint64_t pool, uint64_t klass, uint64_t *out)
{
	*out = 0;
	if (layout_has(m->layout, HS_POOL_SOURCE_FILE))
		return get(m, pool, HS_POOL_SOURCE_FILE, out);
	return !layout_has(m->layout, HS_KLASS_SOURCE_FILE) || get(m, klass, HS_KLASS_SOURCE_FILE, out);
}

/* What does not depend on each other is asked for together. */
static bool read_names(const struct methods *m, uint64_t pool, uint64_t name_index, struct method *out)
{
	uint64_t klass, symbol, length, file_index = 0;
	struct symbol_text class, name, file;
	bool ok;

	if (!get(m, pool, HS_POOL_LENGTH, &length) || !get(m, pool, HS_POOL_HOLDER, &klass) || name_index >= length || !klass)
		return false;
	ok = read_file_index(m, pool, klass, &file_index) && file_index < length;
	ok = symbol_read_constant(m->layout, m->pages, pool, name_index, &name) && ok;
	ok = get(m, klass, HS_KLASS_NAME, &symbol) && symbol_read(m->layout, m->pages, symbol, &class) && ok;
	ok = ok && (!file_index || symbol_read_constant(m->layout, m->pages, pool, file_index, &file));
	if (!ok)
		return false;
	spell_class(&class);
	out->name = arena_printf(m->arena, "%s.%s", class.bytes, name.bytes);
	out->file = file_index ? arena_intern_n(m->arena, file.bytes, file.len) : NULL;
	return out->name;
}

static bool read_method(const struct methods *m, uint64_t address, struct method *out)
{
	uint64_t constant, pool, size, index, flags = 0, access = 0;

	if (!get(m, address, HS_METHOD_CONST, &constant) || !constant || constant % 8 ||
	    !get(m, constant, HS_CONST_CONSTANTS, &pool) || !pool || pool % 8 ||
	    !get(m, constant, HS_CONST_CODE_SIZE, &size) || !get(m, constant, HS_CONST_NAME_INDEX, &index))
		return false;
	if (layout_has(m->layout, HS_CONST_FLAGS) && !get(m, constant, HS_CONST_FLAGS, &flags))
		return false;
	if (layout_has(m->layout, HS_METHOD_ACCESS_FLAGS) && !get(m, address, HS_METHOD_ACCESS_FLAGS, &access))
		return false;
	out->bytecode = constant + m->layout->facts[HS_SIZE_CONST_METHOD];
	out->code_size = (uint32_t)(size & 0xffff);
	out->is_native = access & ACC_NATIVE;
	out->lines = flags & HAS_LINES ? out->bytecode + out->code_size : 0;
	return read_names(m, pool, index & 0xffff, out);
}

bool methods_find_code(struct methods *m, uint64_t address, uint64_t *start, uint64_t *size)
{
	uint64_t constant;

	if (!address || address % 8 || !get(m, address, HS_METHOD_CONST, &constant) || !constant || constant % 8 ||
	    !get(m, constant, HS_CONST_CODE_SIZE, size))
		return false;
	*start = constant + m->layout->facts[HS_SIZE_CONST_METHOD];
	*size &= 0xffff;
	return true;
}

const struct method *methods_find(struct methods *m, uint64_t address)
{
	uint64_t *slot = u64map_find(&m->known, address);
	struct method method = {0}, *kept;
	bool created;

	if (slot)
		return (const struct method *)(uintptr_t)*slot;
	if (!address || address % 8 || !read_method(m, address, &method))
		return NULL;
	kept = arena_alloc(m->arena, sizeof(*kept));
	slot = kept ? u64map_put(&m->known, address, &created) : NULL;
	if (!slot) {
		m->pages->no_memory = true;
		return NULL;
	}
	*kept = method;
	*slot = (uintptr_t)kept;
	return kept;
}

/* How many bytes it has is not told: it ends with a 0. */
bool methods_find_line(struct methods *m, const struct method *method, int32_t bci, uint32_t *line)
{
	bool excludes_zero = m->layout->facts[HS_FEATURE] >= EXCLUDES_ZERO_SINCE;
	_cleanup_free_ uint8_t *bytes = NULL;

	*line = 0;
	if (!method->lines || bci >= (int32_t)method->code_size)
		return true;
	for (size_t len = PAGES_SIZE - method->lines % PAGES_SIZE; len <= MAX_LINES; len += PAGES_SIZE) {
		uint8_t *longer = realloc(bytes, len);
		struct cursor c = cursor_init(longer, len);
		uint32_t found;

		if (!longer) {
			m->pages->no_memory = true;
			return false;
		}
		bytes = longer;
		if (!pages_read(m->pages, method->lines, bytes, len))
			return false;
		found = line_table_find(&c, excludes_zero, bci < 0 ? 0 : (uint32_t)bci);
		if (!c.bad) {
			*line = found;
			return true;
		}
	}
	return true;
}
