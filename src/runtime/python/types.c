/* SPDX-License-Identifier: MIT */
#include "runtime/python/types.h"

#include <string.h>

enum {
	OBJECT_TYPE = 8,
	TYPE_NAME = 24, /* PyTypeObject, the same since 3.0 */
	TYPE_BASIC_SIZE = 32,
	TYPE_FLAGS = 168,
	TYPE_NEXT = 224,
	FLAG_HEAP = 1 << 9,
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

uint64_t python_type_of(struct mem *mem, uint64_t object)
{
	uint64_t type;

	return object && read_u64(mem, object + OBJECT_TYPE, &type) ? type : 0;
}

bool python_type_read(struct mem *mem, uint64_t object, struct python_type *out)
{
	uint64_t text, flags, next;
	ssize_t got;

	out->address = python_type_of(mem, object);
	if (!out->address || !read_u64(mem, out->address + TYPE_NAME, &text) ||
	    !read_u64(mem, out->address + TYPE_BASIC_SIZE, &out->basic_size) ||
	    !read_u64(mem, out->address + TYPE_FLAGS, &flags) || !read_u64(mem, out->address + TYPE_NEXT, &next))
		return false;
	got = mem->read(mem, text, out->name, sizeof(out->name) - 1);
	if (got <= 0)
		return false;
	out->name[got] = '\0';
	out->is_iterator = next;
	out->of_program = flags & FLAG_HEAP;
	out->flags = flags;
	return true;
}

bool python_is_a(struct mem *mem, uint64_t object, const char *name)
{
	struct python_type type;

	return python_type_read(mem, object, &type) && !type.of_program && strcmp(type.name, name) == 0;
}
