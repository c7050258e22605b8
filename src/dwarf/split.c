/* SPDX-License-Identifier: MIT */
#include "dwarf/split.h"

#include <dwarf.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"

enum {
	MAX_SPLIT_FILES = 1 << 16,
	MAX_COLUMNS = 16,
	MAX_SEARCH_WORK = 1 << 26, /* bytes of abbreviations read to find one unit among those of a file */
	MAX_PROBES = 1 << 12,      /* slots of a hash table that are tried for one unit */
};

struct split_file {
	char *dir;               /* may be NULL */
	char *name;              /* the same name may be in several directories */
	struct split_file *next; /* with the same hash */
	struct image *image;     /* NULL: it is not there */
	struct dwarf_file dwarf;
	struct span index; /* .debug_cu_index, of a package */
};

struct split_files {
	split_open open;
	void *ctx;
	struct split_file *package; /* the .dwp file, or NULL */
	pthread_mutex_t lock;       /* guards what follows */
	VEC(struct split_file *) files;
	struct u64map by_path; /* hash of directory and name to a struct split_file */
	const char *missing;
};

/* Where the parts of one unit lie in a package. */
struct contribution {
	uint64_t info;
	uint64_t abbrev;
	uint64_t str_offsets;
	uint64_t rnglists;
};

/* A unit of a split file: a copy, since the offset of its abbreviations is adjusted. */
struct split_unit {
	const struct dwarf_file *file;
	struct dwarf_unit unit;
	struct contribution at;
};

static void destroy_file(struct split_file *file)
{
	if (!file)
		return;
	dwarf_file_deinit(&file->dwarf);
	image_destroy(file->image);
	free(file->dir);
	free(file->name);
	free(file);
}

/* Takes the image over. One with absurd compressed sections is treated as missing. */
static struct split_file *create_file(struct image *image, const char *dir, const char *name)
{
	struct split_file *file = calloc(1, sizeof(*file));

	if (!file || (image && !image_is_unpackable(image))) {
		image_destroy(image);
		image = NULL;
	}
	if (!file)
		return NULL;
	file->image = image;
	file->dir = dir ? strdup(dir) : NULL;
	file->name = strdup(name);
	if (!file->name || (dir && !file->dir) || (image && !dwarf_file_init(&file->dwarf, image, true))) {
		destroy_file(file);
		return NULL;
	}
	if (image)
		file->index = image_section(image, ".debug_cu_index");
	return file;
}

struct split_files *split_files_create(struct image *package, split_open open, void *ctx)
{
	struct split_files *files = calloc(1, sizeof(*files));

	if (!files) {
		image_destroy(package);
		return NULL;
	}
	pthread_mutex_init(&files->lock, NULL);
	files->open = open;
	files->ctx = ctx;
	files->package = package ? create_file(package, NULL, "") : NULL;
	return files;
}

void split_files_destroy(struct split_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->files.len; i++)
		destroy_file(files->files.data[i]);
	vec_deinit(&files->files);
	u64map_deinit(&files->by_path);
	destroy_file(files->package);
	pthread_mutex_destroy(&files->lock);
	free(files);
}

const char *split_files_missing(struct split_files *files)
{
	return files->missing;
}

static bool has_changed(const struct split_file *file)
{
	return file && file->image && image_has_changed(file->image);
}

bool split_files_have_changed(const struct split_files *files)
{
	bool changed = has_changed(files->package);

	for (size_t i = 0; i < files->files.len; i++)
		changed |= has_changed(files->files.data[i]);
	return changed;
}

static bool is_called(const struct split_file *file, const char *dir, const char *name)
{
	return strcmp(file->name, name) == 0 && !file->dir == !dir && (!dir || strcmp(file->dir, dir) == 0);
}

static uint64_t hash_path(const char *dir, const char *name)
{
	uint64_t hash = hash_bytes(HASH_SEED, name, strlen(name) + 1);

	return dir ? hash_bytes(hash, dir, strlen(dir)) : hash;
}

/* The file of a unit, opened once; NULL when memory is exhausted or there are too many. */
static struct split_file *find_file(struct split_files *files, const char *dir, const char *name)
{
	struct split_file *file;
	struct image *image = NULL;
	uint64_t *slot;
	bool created;

	slot = u64map_put(&files->by_path, hash_path(dir, name), &created);
	if (!slot)
		return NULL;
	for (file = (struct split_file *)(uintptr_t)*slot; file; file = file->next)
		if (is_called(file, dir, name))
			return file;
	if (files->files.len == MAX_SPLIT_FILES)
		return NULL;
	if (!files->open || files->open(files->ctx, dir, name, &image) < 0)
		image = NULL;
	file = create_file(image, dir, name);
	if (file && !vec_push(&files->files, file)) {
		destroy_file(file);
		return NULL;
	}
	if (!file)
		return NULL;
	file->next = (struct split_file *)(uintptr_t)*slot;
	*slot = (uintptr_t)file;
	return file;
}

/* Units of DWARF 4 have their id at the root. */
static uint64_t unit_id(const struct dwarf_file *file, const struct dwarf_unit *unit, uint64_t *work)
{
	struct unit_view view;
	struct entry root;
	uint64_t id = unit->dwo_id;

	if (unit->sizes.version >= 5)
		return id;
	if (unit_view_init(&view, file, unit, true, &root))
		value_number(entry_value(&root, ATTR_DWO_ID), &id);
	*work += view.abbrevs.bytes;
	unit_view_deinit(&view);
	return id;
}

static bool find_in_file(const struct split_file *file, uint64_t id, struct split_unit *out)
{
	uint64_t work = 0;

	for (size_t i = 0; i < file->dwarf.units.len && work < MAX_SEARCH_WORK; i++) {
		const struct dwarf_unit *unit = &file->dwarf.units.data[i];

		if (unit->type == DW_UT_split_type || unit_id(&file->dwarf, unit, &work) != id)
			continue;
		*out = (struct split_unit){.file = &file->dwarf, .unit = *unit};
		return true;
	}
	return false;
}

/* A file of another build has the right name, but not the unit: it is treated as missing. */
static bool find_in_files(struct split_files *files, const char *dir, const char *name, uint64_t id,
			  struct split_unit *out)
{
	struct split_file *file;
	bool found;

	pthread_mutex_lock(&files->lock);
	file = find_file(files, dir, name);
	pthread_mutex_unlock(&files->lock);
	found = file && file->image && find_in_file(file, id, out);
	if (file && !found) {
		pthread_mutex_lock(&files->lock);
		files->missing = files->missing ? files->missing : file->name;
		pthread_mutex_unlock(&files->lock);
	}
	return found;
}

/* The columns of the package's index; the numbers of sections differ between GNU's version 2 and DWARF 5. */
static void take_column(struct contribution *at, uint32_t version, uint32_t section, uint32_t offset)
{
	if (section == DW_SECT_INFO)
		at->info = offset;
	else if (section == DW_SECT_ABBREV)
		at->abbrev = offset;
	else if (section == DW_SECT_STR_OFFSETS)
		at->str_offsets = offset;
	else if (section == DW_SECT_RNGLISTS && version == 5)
		at->rnglists = offset;
}

/* .debug_cu_index: a hash table of ids, and for each slot the row of a table with the unit's part of each section. */
static bool find_contribution(const struct split_file *package, uint64_t id, struct contribution *out)
{
	struct cursor c = dwarf_cursor(&package->dwarf, &package->index, 0);
	uint32_t version = cursor_u32(&c), columns = cursor_u32(&c), units = cursor_u32(&c), slots = cursor_u32(&c);
	uint64_t hashes = cursor_offset(&c), rows = hashes + (uint64_t)slots * 8, table = rows + (uint64_t)slots * 4;
	uint32_t row = 0;

	if (version > 5) /* DWARF 5 has 16 bits for it */
		version = package->dwarf.big_endian ? version >> 16 : version & 0xffff;
	if (c.bad || columns > MAX_COLUMNS || !slots || (slots & (slots - 1)))
		return false;
	for (uint64_t i = id & (slots - 1), tried = 0; tried < slots && tried < MAX_PROBES && !row; tried++) {
		uint64_t found;

		cursor_seek(&c, hashes + i * 8);
		found = cursor_u64(&c);
		cursor_seek(&c, rows + i * 4);
		if (found == id)
			row = cursor_u32(&c);
		if (c.bad || (!found && found != id))
			return false;
		i = (i + ((id >> 32 & (slots - 1)) | 1)) & (slots - 1);
	}
	if (!row || row > units)
		return false;
	for (uint32_t column = 0; column < columns; column++) {
		uint32_t what;

		cursor_seek(&c, table + (uint64_t)column * 4);
		what = cursor_u32(&c);
		cursor_seek(&c, table + ((uint64_t)row * columns + column) * 4);
		take_column(out, version, what, cursor_u32(&c));
	}
	return !c.bad;
}

static bool find_in_package(const struct split_file *package, uint64_t id, struct split_unit *out)
{
	const struct dwarf_unit *unit;
	struct contribution at = {0};

	if (!package || !find_contribution(package, id, &at))
		return false;
	unit = dwarf_file_unit_from(&package->dwarf, at.info);
	if (!unit)
		return false;
	*out = (struct split_unit){.file = &package->dwarf, .unit = *unit, .at = at};
	out->unit.abbrevs += at.abbrev;
	return true;
}

/* In a split file the tables start right behind their headers; the unit does not say where. */
static void set_bases(const struct split_unit *split, struct unit_view *view)
{
	bool wide = split->unit.sizes.offset == 8;

	view->str_offsets_base = split->at.str_offsets;
	view->rnglists_base = split->at.rnglists;
	if (split->unit.sizes.version >= 5) {
		view->str_offsets_base += wide ? 16 : 8;
		view->rnglists_base += wide ? 20 : 12;
	}
}

/* Copied, because paths are read more than once. */
static char *copy_string(const struct unit_view *view, const struct value *value)
{
	const char *string = value_string(view, value);

	return string ? strndup(string, PATH_MAX) : NULL;
}

bool split_view_init(struct split_files *files, const struct unit_view *skeleton, const struct entry *skeleton_root,
		     struct unit_view *view)
{
	_cleanup_free_ char *name = copy_string(skeleton, entry_value(skeleton_root, ATTR_DWO_NAME));
	_cleanup_free_ char *dir = copy_string(skeleton, entry_value(skeleton_root, ATTR_COMP_DIR));
	uint64_t id = skeleton->unit.dwo_id;
	struct split_unit split;
	struct entry root;

	*view = (struct unit_view){0};
	if (skeleton->unit.sizes.version < 5 && !value_number(entry_value(skeleton_root, ATTR_DWO_ID), &id))
		return false;
	if (!find_in_package(files->package, id, &split) && !(name && find_in_files(files, dir, name, id, &split)))
		return false;
	if (!unit_view_init(view, split.file, &split.unit, false, &root))
		return false;
	set_bases(&split, view);
	view->addr_file = skeleton->file;
	view->addr_base = skeleton->addr_base;
	view->ranges_file = skeleton->file;
	value_number(entry_value(skeleton_root, ATTR_RANGES_BASE), &view->ranges_base);
	view->low_pc = skeleton->low_pc;
	return true;
}
