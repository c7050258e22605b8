/* SPDX-License-Identifier: MIT */
#include "runtime/python/locals.h"

#include "runtime/python/strings.h"
#include "runtime/python/values.h"

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

void python_locals_touch(const struct python_layout *layout, struct mem *mem, uint64_t frame)
{
	uint64_t slots[PYTHON_MAX_LOCALS / 2];

	mem->read(mem, frame + layout->at[PY_FRAME_LOCALS], slots, sizeof(slots));
}

/* One tuple has all names since 3.11; before, variables are followed by those shared with functions within and without. */
static size_t read_names(const struct python_layout *layout, struct mem *mem, uint64_t code, uint64_t *names)
{
	static const enum python_word words[] = {PY_CODE_VARIABLES, PY_CODE_CELLS, PY_CODE_FREE};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t tuple;

		if (layout->at[words[i]] && read_u64(mem, code + layout->at[words[i]], &tuple))
			n += python_tuple_items(layout, mem, tuple, names + n, PYTHON_MAX_LOCALS - n);
	}
	return n;
}

bool python_locals_read(const struct python_layout *layout, struct mem *own, struct mem *mem, uint64_t frame, uint64_t code,
			struct arena *arena, const struct frame_local **out, uint32_t *n)
{
	uint64_t names[PYTHON_MAX_LOCALS];
	size_t count = read_names(layout, mem, code, names);
	struct frame_local *locals = count ? arena_alloc(arena, count * sizeof(*locals)) : NULL;

	*n = 0;
	*out = locals;
	for (size_t i = 0; locals && i < count; i++) {
		const char *name = python_string(layout, mem, names[i], arena), *value;
		uint64_t slot;

		if (!read_u64(own, frame + layout->at[PY_FRAME_LOCALS] + i * 8, &slot))
			break;
		value = name ? python_slot_value(layout, mem, slot, arena) : NULL;
		if (value)
			locals[(*n)++] = (struct frame_local){.name = name, .value = value};
	}
	return locals || !count;
}
