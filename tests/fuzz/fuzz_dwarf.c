/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/intervals.h"
#include "dwarf/dwarf.h"
#include "dwarfpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_UNITS = 64 };

struct input {
	const uint8_t *data;
	size_t size;
};

/* Split units are in the same file as their skeletons. */
static int open_split(void *ctx, const char *dir, const char *name, struct image **out)
{
	const struct input *input = ctx;

	*out = dwarfpack_image(input->data, input->size);
	return 0;
}

/* Strings that were handed out must be there. */
static size_t touch(const char *s)
{
	return s ? strlen(s) : 0;
}

static void look_at_names(struct unit_map *map)
{
	struct map_name name;
	struct map_file file;
	size_t sum = 0;

	for (size_t i = 0; i < map->nscopes; i++) {
		if (map->scopes[i].parent != MAP_NONE && map->scopes[i].parent >= i)
			abort(); /* or following them might not end */
		if (map->ops->name(map, map->scopes[i].name, &name))
			sum += touch(name.linkage) + touch(name.name);
	}
	for (size_t i = 0; i < map->nrows; i++)
		if (map->ops->file(map, map->rows[i].file, &file))
			sum += touch(file.name) + touch(file.dir) + touch(file.comp_dir);
	__asm__ volatile("" : : "r"(sum)); /* or the compiler would drop the reads */
}

/* What lookups rely on. */
static void check_order(const struct unit_map *map)
{
	for (size_t i = 0; i < map->npieces; i++) {
		if (i && map->pieces[i].start <= map->pieces[i - 1].start)
			abort();
		if (map->pieces[i].scope != MAP_NONE && map->pieces[i].scope >= map->nscopes)
			abort();
	}
	if (map->npieces && map->pieces[map->npieces - 1].scope != MAP_NONE)
		abort();
	for (size_t i = 1; i < map->nrows; i++)
		if (map->rows[i].start < map->rows[i - 1].start)
			abort();
	if (map->nrows && map->rows[map->nrows - 1].line)
		abort();
}

static void look_at_unit(struct dwarf *dwarf, uint32_t unit)
{
	struct unit_map *map = dwarf_map_unit(dwarf, unit);

	if (!map)
		return;
	check_order(map);
	look_at_names(map);
	for (uint64_t at = 0; at < DWARFPACK_CODE + 0x1000; at += 7) {
		unit_map_scope(map, at);
		unit_map_row(map, at);
	}
	unit_map_destroy(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct dwarf_options options = {
		.image = dwarfpack_image(data, size),
		.alt = dwarfpack_image(data, size),
		.open_split = open_split,
		.open_split_ctx = &input,
	};
	struct dwarf *dwarf = NULL;

	if (size && (data[0] & 2))
		options.package = dwarfpack_image(data, size);
	if (dwarf_create(&options, NULL, &dwarf) == 0) {
		const struct pieces *pieces = dwarf_units(dwarf);

		for (size_t i = 0; i < pieces->len; i++)
			if (pieces->data[i].id != PIECE_NONE && pieces->data[i].id >= dwarf_nunits(dwarf))
				abort();
		for (uint32_t i = 0; i < dwarf_nunits(dwarf) && i < MAX_UNITS; i++)
			look_at_unit(dwarf, i);
		touch(dwarf_missing_split(dwarf));
	}
	dwarf_destroy(dwarf);
	image_destroy(options.image);
	image_destroy(options.alt);
	return 0;
}
