/* SPDX-License-Identifier: MIT */
#include "symbol/source_dwarf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/parallel.h"

enum { MAX_INLINED = 256 };

struct dwarf_source {
	struct dwarf *dwarf;
	struct unit_map **maps; /* by number of the unit; NULL: not read yet */
	bool *tried;
	struct arena *arena; /* of paths */
	struct u64map paths; /* number of the unit and of the file to the whole path */
	struct u64map names; /* number of the unit and name id to a struct map_name in the arena */
};

DEFINE_CLEANUP(dwarf_source, struct dwarf_source *, dwarf_source_destroy)

int dwarf_source_create(const struct dwarf_options *options, struct err *err, struct dwarf_source **out)
{
	_cleanup_(cleanup_dwarf_source) struct dwarf_source *source = calloc(1, sizeof(*source));
	int ret;

	if (!source) {
		image_destroy(options->package);
		return err_set(err, ENOMEM, "out of memory");
	}
	ret = dwarf_create(options, err, &source->dwarf);
	if (ret < 0)
		return ret;
	source->maps = calloc(dwarf_nunits(source->dwarf), sizeof(*source->maps));
	source->tried = calloc(dwarf_nunits(source->dwarf), sizeof(*source->tried));
	source->arena = arena_create();
	if (!source->maps || !source->tried || !source->arena)
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(source);
	return 0;
}

void dwarf_source_destroy(struct dwarf_source *source)
{
	if (!source)
		return;
	for (uint32_t i = 0; source->maps && i < dwarf_nunits(source->dwarf); i++)
		unit_map_destroy(source->maps[i]);
	free(source->maps);
	free(source->tried);
	dwarf_destroy(source->dwarf);
	u64map_deinit(&source->paths);
	u64map_deinit(&source->names);
	arena_destroy(source->arena);
	free(source);
}

const char *dwarf_source_missing(const struct dwarf_source *source)
{
	return dwarf_missing_split(source->dwarf);
}

struct batch {
	struct dwarf_source *source;
	VEC(uint32_t) units;
};

static void read_unit(void *ctx, size_t i)
{
	struct batch *batch = ctx;
	uint32_t unit = batch->units.data[i];

	batch->source->maps[unit] = dwarf_map_unit(batch->source->dwarf, unit);
}

void dwarf_source_prepare(struct dwarf_source *source, const uint64_t *vaddrs, size_t n)
{
	struct batch batch = {.source = source};

	for (size_t i = 0; i < n; i++) {
		uint32_t unit = dwarf_unit_at(source->dwarf, vaddrs[i]);

		if (unit == MAP_NONE || source->tried[unit] || !vec_push(&batch.units, unit))
			continue;
		source->tried[unit] = true;
	}
	parallel_for(batch.units.len, read_unit, &batch);
	vec_deinit(&batch.units);
}

/* comp_dir/dir/name, from the first part that is absolute. NULL when the unit does not tell. */
static const char *path_of(struct dwarf_source *source, uint32_t unit, uint16_t file)
{
	struct map_file parts;
	uint64_t *slot;
	bool created;

	if (file == MAP_NO_FILE)
		return NULL;
	slot = u64map_put(&source->paths, (uint64_t)unit << 16 | file, &created);
	if (!slot)
		return NULL;
	if (created && source->maps[unit]->ops->file(source->maps[unit], file, &parts))
		*slot = (uintptr_t)arena_printf(source->arena, "%s%s%s%s%s", parts.comp_dir ? parts.comp_dir : "",
						parts.comp_dir ? "/" : "", parts.dir ? parts.dir : "",
						parts.dir ? "/" : "", parts.name);
	return (const char *)(uintptr_t)*slot;
}

static const struct map_name *name_of(struct dwarf_source *source, uint32_t unit, uint32_t id)
{
	static const struct map_name none;
	struct map_name *name;
	uint64_t *slot;
	bool created;

	slot = u64map_put(&source->names, (uint64_t)unit << 32 | id, &created);
	if (!slot)
		return &none;
	if (created && (name = arena_alloc(source->arena, sizeof(*name)))) {
		source->maps[unit]->ops->name(source->maps[unit], id, name);
		*slot = (uintptr_t)name;
	}
	return *slot ? (const struct map_name *)(uintptr_t)*slot : &none;
}

static void set_place(struct call *call, const char *file, uint32_t line, uint32_t column)
{
	if (!file || !line)
		return;
	call->file = file;
	call->line = line;
	call->column = column;
}

static void name_call(struct dwarf_source *source, uint32_t unit, const struct map_scope *scope, struct call *call)
{
	const struct map_name *name = name_of(source, unit, scope->name);

	call->linkage = name->linkage;
	call->linkage_len = name->linkage ? strlen(name->linkage) : 0;
	call->name = name->name;
	call->source = name->linkage || name->name ? SYMBOL_DWARF : SYMBOL_UNKNOWN;
	if (scope->parent == MAP_NONE && scope->at != MAP_NONE) {
		call->has_start = true;
		call->start = source->maps[unit]->base + scope->at;
	}
}

bool dwarf_source_find(struct dwarf_source *source, uint64_t vaddr, struct calls *out)
{
	uint32_t unit = dwarf_unit_at(source->dwarf, vaddr), at;
	const struct unit_map *map;
	const struct map_row *row;
	struct call call = {0};

	out->len = 0;
	if (unit == MAP_NONE)
		return false;
	if (!source->tried[unit])
		dwarf_source_prepare(source, &vaddr, 1);
	map = source->maps[unit];
	if (!map)
		return false;
	row = unit_map_row(map, vaddr);
	if (row)
		set_place(&call, path_of(source, unit, row->file), row->line, row->column);
	at = unit_map_scope(map, vaddr);
	if (at == MAP_NONE)
		return row && vec_push(out, call);
	for (unsigned i = 0; at < map->nscopes && i < MAX_INLINED; i++) {
		const struct map_scope *scope = &map->scopes[at];

		name_call(source, unit, scope, &call);
		if (!vec_push(out, call))
			return false;
		/* Where the inlined call was made, its caller is. */
		call = (struct call){0};
		if (scope->parent != MAP_NONE)
			set_place(&call, path_of(source, unit, scope->file), scope->at, scope->column);
		at = scope->parent;
	}
	return true;
}
