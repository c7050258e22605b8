/* SPDX-License-Identifier: MIT */
#include "dwarf/dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/intervals.h"
#include "base/map.h"
#include "dwarf/functions.h"
#include "dwarf/rangelist.h"

enum {
	MAX_UNIT_RANGES = 1 << 24, /* of all units together */
	MIN_LIMIT = 1 << 22,       /* entries of maps; split units come on top of what the file has */
	MAX_LINKS = 16,            /* from an instance to the entry that has its name */
	WORK_PER_ENTRY = 16,       /* so many bytes of shared tables count as one entry */
	MAX_INDEX_WORK = 1 << 28,  /* bytes of abbreviations read to find the roots of all units */
};

struct dwarf {
	struct dwarf_file file;
	struct dwarf_file alt;
	struct split_files *split;
	struct code_bounds code;
	struct pieces units;
	atomic_size_t used; /* entries of all maps so far: units that share tables must not multiply them */
	size_t limit;
	struct u64map views; /* address of a struct dwarf_unit to its struct unit_view: for names in other units */
	VEC(struct unit_view *) owned_views;
};

/* A map made from DWARF: names and files are looked up there when they are asked for. */
struct built_map {
	struct unit_map map;
	struct dwarf *dwarf;
	struct unit_view view;
	struct functions functions;
	struct line_table lines;
	size_t work; /* bytes read for it of tables that units may share */
};

DEFINE_CLEANUP(dwarf, struct dwarf *, dwarf_destroy)

/*
 * Of a function that several units have (COMDAT) the linker keeps the first copy. GNU ld points the debug info of the
 * others at that copy when the sizes are equal: then several units claim the code, and the first one is right.
 */
static uint32_t rank_of(uint32_t unit)
{
	return UINT32_MAX - unit;
}

/* .debug_aranges, for units without ranges at the root: strict DWARF 2 cannot have them. */
static bool index_by_aranges(struct dwarf *dwarf, struct intervals *intervals, const struct u64map *unranged)
{
	struct cursor c = dwarf_cursor(&dwarf->file, &dwarf->file.aranges, 0);

	while (cursor_left(&c)) {
		uint8_t offset_size = 4, address_size;
		uint64_t length = dwarf_initial_length(&c, &offset_size);
		struct cursor set = cursor_take(&c, length);
		size_t header = offset_size == 8 ? 12 : 4; /* the length itself counts for the alignment */
		const uint64_t *unit;
		uint64_t offset;

		cursor_u16(&set); /* version */
		offset = cursor_uint(&set, offset_size);
		address_size = cursor_u8(&set);
		cursor_u8(&set);
		unit = u64map_find(unranged, offset);
		if (!unit || !address_size || address_size > 8)
			continue;
		cursor_skip(&set, -(header + cursor_offset(&set)) % (2u * address_size));
		while (cursor_left(&set) && intervals->len < MAX_UNIT_RANGES) {
			uint64_t start = cursor_uint(&set, address_size), size = cursor_uint(&set, address_size);

			if (!set.bad && is_code(&dwarf->code, start) &&
			    !intervals_add(intervals, start, start + size, (uint32_t)*unit, rank_of((uint32_t)*unit)))
				return false;
		}
	}
	return true;
}

static bool index_unit(struct dwarf *dwarf, uint32_t number, struct intervals *intervals, struct pc_ranges *ranges,
		       struct u64map *unranged, uint64_t *work)
{
	const struct dwarf_unit *unit = &dwarf->file.units.data[number];
	struct unit_view view;
	struct entry root;
	bool ok = true, created;
	uint64_t *slot;

	if (unit_view_init(&view, &dwarf->file, unit, true, &root) &&
	    (root.abbrev->tag == DW_TAG_compile_unit || root.abbrev->tag == DW_TAG_skeleton_unit)) {
		/* GNU's DW_AT_GNU_ranges_base is for the split unit, not for its skeleton. */
		ok = entry_ranges(&view, &root, ranges);
		for (size_t i = 0; ok && i < ranges->len && intervals->len < MAX_UNIT_RANGES; i++)
			if (is_code(&dwarf->code, ranges->data[i].start))
				ok = intervals_add(intervals, ranges->data[i].start, ranges->data[i].end, number,
						   rank_of(number));
		if (ok && !ranges->len) {
			slot = u64map_put(unranged, unit->offset, &created);
			ok = slot;
			if (slot)
				*slot = number;
		}
	}
	*work += view.abbrevs.bytes;
	unit_view_deinit(&view);
	return ok;
}

static bool index_units(struct dwarf *dwarf)
{
	struct intervals intervals = {0};
	struct pc_ranges ranges = {.budget = ranges_budget(&dwarf->file, &dwarf->file)};
	struct u64map unranged = {0};
	uint64_t work = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < dwarf->file.units.len && work < MAX_INDEX_WORK; i++)
		ok = index_unit(dwarf, (uint32_t)i, &intervals, &ranges, &unranged, &work);
	ok = ok && (!unranged.len || index_by_aranges(dwarf, &intervals, &unranged)) &&
	     intervals_flatten(&intervals, &dwarf->units);
	vec_deinit(&intervals);
	vec_deinit(&ranges);
	u64map_deinit(&unranged);
	return ok;
}

static void find_code(struct dwarf *dwarf, const struct image *image)
{
	image_code_bounds(image, &dwarf->code.start, &dwarf->code.end);
	if (dwarf->code.end - dwarf->code.start >= MAP_NONE)
		dwarf->code.end = dwarf->code.start + MAP_NONE - 1;
}

int dwarf_create(const struct dwarf_options *options, struct err *err, struct dwarf **out)
{
	_cleanup_(cleanup_dwarf) struct dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf) {
		image_destroy(options->package);
		return err_set(err, ENOMEM, "out of memory");
	}
	dwarf->split = split_files_create(options->package, options->open_split, options->open_split_ctx);
	if (!dwarf->split)
		return err_set(err, ENOMEM, "out of memory");
	if (!image_is_unpackable(options->image) || (options->alt && !image_is_unpackable(options->alt)))
		return err_set(err, E2BIG, "the compressed debug info is too large");
	if (!image_has_section(options->image, ".debug_info"))
		return err_set(err, ENOENT, "there is no .debug_info");
	find_code(dwarf, options->image);
	if (!dwarf_file_init(&dwarf->file, options->image, false) ||
	    (options->alt && !dwarf_file_init(&dwarf->alt, options->alt, false)))
		return err_set(err, ENOMEM, "out of memory");
	if (options->alt)
		dwarf->file.alt = &dwarf->alt;
	/* Every entry of a map takes more than a byte. */
	dwarf->limit = MIN_LIMIT + dwarf->file.info.len + dwarf->file.line.len + dwarf->file.ranges.len +
		       dwarf->file.rnglists.len;
	if (!dwarf->file.units.len)
		return err_set(err, EINVAL, "the debug info is damaged: it has no units");
	if (!index_units(dwarf))
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(dwarf);
	return 0;
}

static void destroy_view(struct unit_view *view)
{
	if (view)
		unit_view_deinit(view);
	free(view);
}

void dwarf_destroy(struct dwarf *dwarf)
{
	if (!dwarf)
		return;
	for (size_t i = 0; i < dwarf->owned_views.len; i++)
		destroy_view(dwarf->owned_views.data[i]);
	vec_deinit(&dwarf->owned_views);
	u64map_deinit(&dwarf->views);
	vec_deinit(&dwarf->units);
	split_files_destroy(dwarf->split);
	dwarf_file_deinit(&dwarf->file);
	dwarf_file_deinit(&dwarf->alt);
	free(dwarf);
}

uint32_t dwarf_unit_at(const struct dwarf *dwarf, uint64_t vaddr)
{
	return pieces_find(&dwarf->units, vaddr);
}

const struct pieces *dwarf_units(const struct dwarf *dwarf)
{
	return &dwarf->units;
}

uint32_t dwarf_nunits(const struct dwarf *dwarf)
{
	return (uint32_t)dwarf->file.units.len;
}

const char *dwarf_missing_split(const struct dwarf *dwarf)
{
	return split_files_missing(dwarf->split);
}

bool dwarf_split_has_changed(const struct dwarf *dwarf)
{
	return split_files_have_changed(dwarf->split);
}

/* The view of another unit than the map's own, kept for the next name. NULL when there is none. */
static const struct unit_view *other_view(struct dwarf *dwarf, const struct dwarf_file *file, uint64_t offset)
{
	const struct dwarf_unit *unit = dwarf_file_unit(file, offset);
	struct unit_view *view;
	struct entry root;
	uint64_t *slot;
	bool created;

	slot = unit ? u64map_put(&dwarf->views, (uintptr_t)unit, &created) : NULL;
	if (!slot)
		return NULL;
	if (created) {
		view = malloc(sizeof(*view));
		if (view && (!unit_view_init(view, file, unit, false, &root) || !vec_push(&dwarf->owned_views, view))) {
			destroy_view(view);
			view = NULL;
		}
		*slot = (uintptr_t)view;
	}
	return (const struct unit_view *)(uintptr_t)*slot;
}

/* Follows the links from an instance to its declaration until both names are known. */
static bool read_name(struct dwarf *dwarf, const struct unit_view *view, uint64_t offset, struct map_name *out)
{
	for (unsigned links = 0; view && links < MAX_LINKS; links++) {
		const struct value *link;
		const struct dwarf_file *file;
		struct entry entry;

		if (!entry_read_at(view, offset, &entry))
			return false;
		if (!out->linkage)
			out->linkage = value_string(view, entry_value(&entry, ATTR_LINKAGE_NAME));
		if (!out->name)
			out->name = value_string(view, entry_value(&entry, ATTR_NAME));
		link = entry_has(&entry, ATTR_ORIGIN) ? entry_value(&entry, ATTR_ORIGIN)
						      : entry_value(&entry, ATTR_SPECIFICATION);
		if ((out->linkage && out->name) || !link->form)
			break;
		if (!value_reference(view, link, &file, &offset))
			return false;
		if (file != view->file || offset < view->unit.dies || offset >= view->unit.end)
			view = other_view(dwarf, file, offset);
	}
	return view && (out->linkage || out->name);
}

static bool built_name(struct unit_map *map, uint32_t id, struct map_name *out)
{
	struct built_map *built = (struct built_map *)map;
	const struct dwarf_file *file = built->view.file;
	uint64_t at;

	*out = (struct map_name){0};
	if (id == MAP_NONE)
		return false;
	if (!(id & FUNCTIONS_ELSEWHERE))
		return read_name(built->dwarf, &built->view, built->view.unit.offset + id, out);
	id &= ~FUNCTIONS_ELSEWHERE;
	if (id >= built->functions.elsewhere.len)
		return false;
	at = built->functions.elsewhere.data[id];
	if (at & FUNCTIONS_ALT)
		file = file->alt;
	at &= ~FUNCTIONS_ALT;
	return file && read_name(built->dwarf, other_view(built->dwarf, file, at), at, out);
}

static bool built_file(struct unit_map *map, uint16_t id, struct map_file *out)
{
	const struct built_map *built = (struct built_map *)map;

	if (id >= built->lines.files.len || !built->lines.files.data[id].name)
		return false;
	*out = built->lines.files.data[id];
	return true;
}

static void built_destroy(struct unit_map *map)
{
	struct built_map *built = (struct built_map *)map;

	unit_view_deinit(&built->view);
	functions_deinit(&built->functions);
	line_table_deinit(&built->lines);
	free(built);
}

static const struct unit_map_ops built_ops = {
	.name = built_name,
	.file = built_file,
	.destroy = built_destroy,
};

/* Lines are in the linked file; functions too, unless it has only the unit's skeleton. */
static bool build(struct built_map *built, const struct dwarf_unit *unit)
{
	struct dwarf *dwarf = built->dwarf;
	struct unit_view skeleton;
	struct entry root;
	uint64_t lines;
	bool opened = unit_view_init(&skeleton, &dwarf->file, unit, false, &root), ok = true;

	built->map.whole = true;
	built->work = skeleton.abbrevs.bytes;
	if (!opened) {
		unit_view_deinit(&skeleton);
		return true;
	}
	if (value_number(entry_value(&root, ATTR_STMT_LIST), &lines))
		ok = line_table_read(&built->lines, &dwarf->file, lines, unit->sizes.address,
				     value_string(&skeleton, entry_value(&root, ATTR_COMP_DIR)), &dwarf->code);
	built->work += built->lines.bytes;
	if (!entry_has(&root, ATTR_DWO_NAME)) {
		built->view = skeleton;
		return ok && functions_read(&built->functions, &built->view, &dwarf->code);
	}
	if (split_view_init(dwarf->split, &skeleton, &root, &built->view))
		ok = ok && functions_read(&built->functions, &built->view, &dwarf->code);
	else
		built->map.whole = false;
	built->work += built->view.abbrevs.bytes;
	unit_view_deinit(&skeleton);
	return ok;
}

struct unit_map *dwarf_map_unit(struct dwarf *dwarf, uint32_t number)
{
	struct built_map *built = calloc(1, sizeof(*built));

	if (!built)
		return NULL;
	built->map.ops = &built_ops;
	built->map.in_file = true;
	built->map.base = dwarf->code.start;
	built->dwarf = dwarf;
	if (atomic_load(&dwarf->used) < dwarf->limit && !build(built, &dwarf->file.units.data[number])) {
		built_destroy(&built->map);
		return NULL;
	}
	built->map.pieces = built->functions.pieces.data;
	built->map.npieces = built->functions.pieces.len;
	built->map.scopes = built->functions.scopes.data;
	built->map.nscopes = built->functions.scopes.len;
	built->map.rows = built->lines.rows.data;
	built->map.nrows = built->lines.rows.len;
	atomic_fetch_add(&dwarf->used,
			 built->map.nrows + built->map.npieces + built->map.nscopes + built->work / WORK_PER_ENTRY);
	return &built->map;
}
