/* SPDX-License-Identifier: MIT */
#include "symbol/source_dwarf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"

enum { MAX_INLINED = 256 };

struct dwarf_source {
	struct dwarf_source_options options;
	bool opened;         /* opening it was tried */
	struct err error;    /* guards opening it late */
	struct dwarf *dwarf; /* NULL: not opened, or not there */
	uint32_t nunits;
	struct unit_map **maps; /* by number of the unit; NULL: not read yet, or not readable */
	bool *tried;
	VEC(uint32_t) wanted; /* units to be read */
	bool news;            /* a unit was read that the cache does not have */
	struct arena *arena;  /* of paths and names */
	struct u64map paths;  /* number of the unit and of the file to the whole path */
	struct u64map names;  /* number of the unit and name id to a struct map_name */
};

DEFINE_CLEANUP(dwarf_source, struct dwarf_source *, dwarf_source_destroy)

static int open_dwarf(struct dwarf_source *source, struct err *err)
{
	int ret;

	if (source->opened)
		return source->dwarf ? 0 : -ENOENT;
	source->opened = true;
	ret = source->options.open(source->options.ctx, err, &source->dwarf);
	if (ret == 0 && source->options.cache && dwarf_nunits(source->dwarf) != source->nunits) {
		dwarf_destroy(source->dwarf); /* same build-id, but not the file that was cached */
		source->dwarf = NULL;
		return err_set(err, ESTALE, "the debug info has been replaced; the next run reads it");
	}
	return ret;
}

int dwarf_source_create(const struct dwarf_source_options *options, struct err *err, struct dwarf_source **out)
{
	_cleanup_(cleanup_dwarf_source) struct dwarf_source *source = calloc(1, sizeof(*source));
	int ret;

	if (!source)
		return err_set(err, ENOMEM, "out of memory");
	source->options = *options;
	if (options->cache) {
		source->nunits = code_cache_nunits(options->cache);
	} else {
		ret = open_dwarf(source, err);
		if (ret < 0)
			return ret;
		source->nunits = dwarf_nunits(source->dwarf);
	}
	source->maps = calloc(source->nunits + 1, sizeof(*source->maps));
	source->tried = calloc(source->nunits + 1, sizeof(*source->tried));
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
	for (uint32_t i = 0; source->maps && i < source->nunits; i++)
		unit_map_destroy(source->maps[i]);
	free(source->maps);
	free(source->tried);
	vec_deinit(&source->wanted);
	dwarf_destroy(source->dwarf);
	u64map_deinit(&source->paths);
	u64map_deinit(&source->names);
	arena_destroy(source->arena);
	free(source);
}

const struct err *dwarf_source_error(const struct dwarf_source *source)
{
	return &source->error;
}

const char *dwarf_source_missing(const struct dwarf_source *source)
{
	return source->dwarf ? dwarf_missing_split(source->dwarf) : NULL;
}

bool dwarf_source_split_has_changed(const struct dwarf_source *source)
{
	return source->dwarf && dwarf_split_has_changed(source->dwarf);
}

bool dwarf_source_news(const struct dwarf_source *source, struct code_cache_contents *out)
{
	if (!source->news)
		return false;
	out->units = source->dwarf ? dwarf_units(source->dwarf) : NULL;
	out->nunits = source->nunits;
	out->maps = source->maps;
	return true;
}

static uint32_t unit_at(const struct dwarf_source *source, uint64_t vaddr)
{
	return source->options.cache ? code_cache_unit_at(source->options.cache, vaddr)
				     : dwarf_unit_at(source->dwarf, vaddr);
}

size_t dwarf_source_want(struct dwarf_source *source, const uint64_t *vaddrs, size_t n)
{
	source->wanted.len = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t unit = unit_at(source, vaddrs[i]);

		if (unit == MAP_NONE || source->tried[unit])
			continue;
		source->tried[unit] = true;
		if (source->options.cache)
			source->maps[unit] = code_cache_map(source->options.cache, unit);
		if (!source->maps[unit] && !vec_push(&source->wanted, unit))
			break;
	}
	if (source->wanted.len && open_dwarf(source, &source->error) < 0)
		source->wanted.len = 0;
	source->news |= source->wanted.len > 0;
	return source->wanted.len;
}

void dwarf_source_read(struct dwarf_source *source, size_t index)
{
	uint32_t unit = source->wanted.data[index];

	source->maps[unit] = dwarf_map_unit(source->dwarf, unit);
}

/* comp_dir/dir/name, from the last absolute part on. NULL when the unit does not say. */
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
		*slot = (uintptr_t)arena_printf(source->arena, "%.4000s%s%.4000s%s%.4000s",
						parts.comp_dir ? parts.comp_dir : "", parts.comp_dir ? "/" : "",
						parts.dir ? parts.dir : "", parts.dir ? "/" : "", parts.name);
	return (const char *)(uintptr_t)*slot;
}

static const char *copy_string(struct arena *arena, const char *s)
{
	size_t len = s ? strlen(s) : 0;
	char *copy = s ? arena_alloc(arena, len + 1) : NULL;

	if (copy)
		memcpy(copy, s, len); /* the arena's memory is zeroed */
	return copy;
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
		if (source->maps[unit]->in_file) {
			name->linkage = copy_string(source->arena, name->linkage);
			name->name = copy_string(source->arena, name->name);
		}
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
	uint32_t unit = unit_at(source, vaddr), at;
	const struct unit_map *map;
	const struct map_row *row;
	struct call call = {0};

	out->len = 0;
	if (unit == MAP_NONE)
		return false;
	if (!source->tried[unit] && dwarf_source_want(source, &vaddr, 1))
		dwarf_source_read(source, 0);
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
		/* The caller's position is where the inlined call was made. */
		call = (struct call){0};
		if (scope->parent != MAP_NONE)
			set_place(&call, path_of(source, unit, scope->file), scope->at, scope->column);
		at = scope->parent;
	}
	return true;
}

static bool find(void *source, uint64_t vaddr, struct calls *out)
{
	return dwarf_source_find(source, vaddr, out);
}

static void destroy(void *source)
{
	dwarf_source_destroy(source);
}

const struct source_ops dwarf_source_ops = {.find = find, .destroy = destroy};
