/* SPDX-License-Identifier: MIT */
#include "symbol/variable_names.h"

#include <string.h>

#include "base/cleanup.h"
#include "elf/variables.h"
#include "symbol/demangle.h"

enum { MOST_LOOKUPS = 64 }; /* each reads a whole table of symbols */

struct variable_names {
	struct modules *modules;
	bool demangles;
	struct arena *arena;
	unsigned lookups;
};

static const char *keep_name(const struct variable_names *names, const struct variable *variable)
{
	const char *name = arena_intern_n(names->arena, variable->name, variable->name_len);
	_cleanup_free_ char *source = name && names->demangles ? demangle(name) : NULL;

	return source ? arena_intern(names->arena, source) : name;
}

/* Memory of the program's own may lie right behind it. */
static bool is_in_image(const struct image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image_nsegments(image); i++) {
		const Elf64_Phdr *segment = image_segment(image, i);

		if (segment->p_type == PT_LOAD && vaddr >= segment->p_vaddr && vaddr - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

/* Data has no module of its own: it lies as far from the code as in the file. */
static void name_variable(struct variable_names *names, struct wait *w)
{
	const uint64_t address = w->address ? w->address : w->word;
	const struct map_entry *entry;
	struct variable variable;
	struct module *module;
	uint64_t bias = 0;
	size_t at = 0;

	do
		module = modules_next(names->modules, &at, &entry, &bias);
	while (module && strcmp(entry->path, w->path) != 0);
	if (module && !is_in_image(module->image, address - bias)) {
		w->path = NULL;
		return;
	}
	if (!module || names->lookups++ >= MOST_LOOKUPS || !variable_find(module->image, address - bias, &variable))
		return;
	w->variable = keep_name(names, &variable);
	w->variable_offset = address - bias - variable.start;
}

static bool is_same_place(const struct wait *a, const struct wait *b)
{
	return a->address == b->address && a->word == b->word;
}

void variable_names_find(struct modules *modules, bool demangles, struct trace *trace)
{
	struct variable_names names = {.modules = modules, .demangles = demangles, .arena = trace->snap->arena};
	const struct wait *last = NULL;

	for (size_t i = 0; i < trace->threads.len; i++) {
		struct wait *w = &trace->threads.data[i].wait;

		if (!w->path)
			continue;
		if (last && is_same_place(last, w)) { /* many wait for the same, as a rule one after the other */
			w->path = last->path;
			w->variable = last->variable;
			w->variable_offset = last->variable_offset;
		} else {
			name_variable(&names, w);
		}
		last = w;
	}
}
