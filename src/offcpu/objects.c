/* SPDX-License-Identifier: MIT */
#include "offcpu/objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "unwind/bpf_rows.h"

enum {
	MAX_STARTS = 4,
	MAX_CHANGES = 256, /* each is a descriptor */
};

/* In place of a key: the number can be given to a file; it can when BPF has lost the table of the one before. */
static const uint64_t FREE = 0, GOING = UINT64_MAX;

/* Where code is mapped from, and the address in the file that this is. */
struct start {
	uint64_t offset;
	uint64_t vaddr;
};

/* A file waits to be read until one of its addresses is to be named: an image takes ten times as much memory. */
struct object {
	char *path;
	int fd;       /* -1: it is in memory only, or was read */
	void *memory; /* of `len` bytes, or NULL */
	size_t len;
	struct module *module; /* NULL: it was not read */
	struct start starts[MAX_STARTS];
	uint32_t nstarts;
	struct object_table table;
	enum objects_fit fit;
	uint32_t taken;
	bool kept;
};

struct objects {
	struct offcpu_probe *probe;
	struct objects_limits limits;
	room_fn make_room;
	void *arg;
	uint64_t *keys;        /* by number, of the files, or FREE or GOING */
	uint64_t rows;         /* that BPF has, or will have */
	int none;              /* an empty table */
	VEC(uint32_t) changed; /* objects that will have other tables */
	VEC(int) tables;       /* which: theirs, or `none` */

	pthread_mutex_t lock; /* of what follows: the thread that takes and gives changes it, others look */
	struct object **all;  /* by number */
};

DEFINE_CLEANUP(objects, struct objects *, objects_destroy)

struct objects *objects_create(struct offcpu_probe *probe, const struct objects_limits *limits, room_fn make_room,
			       void *arg)
{
	_cleanup_(cleanup_objects) struct objects *objects = calloc(1, sizeof(*objects));

	if (!objects)
		return NULL;
	pthread_mutex_init(&objects->lock, NULL);
	objects->probe = probe;
	objects->limits = *limits;
	objects->make_room = make_room;
	objects->arg = arg;
	objects->keys = calloc(limits->files, sizeof(*objects->keys));
	objects->all = calloc(limits->files, sizeof(*objects->all));
	objects->none = -1;
	return objects->keys && objects->all ? steal_ptr(objects) : NULL;
}

static void destroy_object(struct object *object)
{
	if (!object)
		return;
	module_destroy(object->module);
	if (object->fd >= 0)
		close(object->fd);
	free(object->memory);
	free(object->path);
	free(object);
}

DEFINE_CLEANUP(object, struct object *, destroy_object)

static void drop_changes(struct objects *objects)
{
	for (size_t i = 0; i < objects->tables.len; i++)
		if (objects->tables.data[i] != objects->none)
			close(objects->tables.data[i]);
	objects->changed.len = objects->tables.len = 0;
}

void objects_destroy(struct objects *objects)
{
	if (!objects)
		return;
	for (uint32_t i = 0; objects->all && i < objects->limits.files; i++)
		destroy_object(objects->all[i]);
	drop_changes(objects);
	if (objects->none >= 0)
		close(objects->none);
	vec_deinit(&objects->changed);
	vec_deinit(&objects->tables);
	pthread_mutex_destroy(&objects->lock);
	free(objects->all);
	free(objects->keys);
	free(objects);
}

/* The bytes of the file, or of the image in memory. */
static struct span bytes_of(const struct image *image)
{
	struct span bytes = {0};

	bytes.data = (const uint8_t *)elf_rawfile(image_elf(image), &bytes.len);
	return bytes;
}

uint64_t objects_key(const struct module *module)
{
	uint64_t identity = module->image ? image_identity(module->image) : 0;
	struct span bytes;

	if (identity || !module->image || module->jit)
		return identity;
	bytes = bytes_of(module->image);
	return bytes.data ? hash_bytes(HASH_SEED, bytes.data, bytes.len) | 1 : 0;
}

/* The number that has the key. Below 32 KiB to look through, and hundreds of microseconds go before for each file. */
static bool find_key(const struct objects *objects, uint64_t key, uint32_t *number)
{
	for (uint32_t i = 0; i < objects->limits.files; i++)
		if (objects->keys[i] == key) {
			*number = i;
			return true;
		}
	return false;
}

/* The image of a process lies in what was read of it. */
static void copy_memory(struct object *object, const struct image *image)
{
	struct span bytes = bytes_of(image);

	object->memory = bytes.data ? malloc(bytes.len) : NULL;
	if (!object->memory)
		return;
	memcpy(object->memory, bytes.data, bytes.len);
	object->len = bytes.len;
}

static bool read_object(struct object *object, struct image *image)
{
	return image && module_create(image, object->path, NULL, &object->module) == 0;
}

static struct object *create_object(const struct modules *modules, const struct map_entry *entry, struct module *module)
{
	_cleanup_(cleanup_object) struct object *object = calloc(1, sizeof(*object));
	bool ok;

	if (!object)
		return NULL;
	object->fd = -1;
	object->path = strdup(module->info.path);
	if (!object->path)
		return NULL;
	if (image_identity(module->image))
		object->fd = modules_open_mapped(modules, entry, NULL);
	else
		copy_memory(object, module->image);
	ok = object->fd >= 0 || object->memory;
	/* The process has just ended, or there are no descriptors left: then what was read is kept. */
	if (!ok && image_identity(module->image))
		ok = read_object(object, module_take_image(module));
	return ok ? steal_ptr(object) : NULL;
}

static bool has_room(struct objects *objects, size_t rows)
{
	while (objects->rows + rows > objects->limits.rows)
		if (!objects->make_room(objects->arg))
			return false;
	return true;
}

/* The object will have this table, which is closed then. */
static bool change(struct objects *objects, uint32_t number, int table)
{
	if (!vec_reserve(&objects->changed, objects->changed.len + 1) ||
	    !vec_reserve(&objects->tables, objects->tables.len + 1))
		return false;
	vec_push(&objects->changed, number);
	vec_push(&objects->tables, table);
	return true;
}

/* Makes the table of a file for BPF. */
static void add_table(struct objects *objects, struct object *object, uint32_t number, struct image *image)
{
	struct bpf_rows rows = {0};
	int table;

	object->fit = OBJECTS_FIT;
	if (bpf_rows_build(image, arch_host(), NULL, &rows) == 0 && rows.len) {
		object->fit = OBJECTS_NO_TABLE;
		table = has_room(objects, rows.len) ? offcpu_probe_create_table(objects->probe, rows.data, rows.len)
						    : -1;
		if (table >= 0 && change(objects, number, table)) {
			object->table = (struct object_table){.base = rows.base, .nrows = (uint32_t)rows.len};
			objects->rows += rows.len;
			object->fit = rows.cut ? OBJECTS_NO_TABLE : OBJECTS_FIT;
		} else if (table >= 0) {
			close(table);
		}
	}
	bpf_rows_deinit(&rows);
	if (objects->changed.len >= MAX_CHANGES)
		objects_flush(objects);
}

static void remove_table(struct objects *objects, struct object *object, uint32_t number)
{
	static const struct unwind_row none = {.kind = UNWIND_NONE};

	if (!object->table.nrows)
		return;
	objects->rows -= object->table.nrows;
	object->table = (struct object_table){0};
	if (objects->none < 0)
		objects->none = offcpu_probe_create_table(objects->probe, &none, 1);
	if (objects->none >= 0)
		change(objects, number, objects->none);
}

/* BPF does not find tables that are gone, but it may be at one now: not any more when setting objects has returned. */
uint32_t objects_flush(struct objects *objects)
{
	uint32_t lost = 0;
	int rc = offcpu_probe_set_objects(objects->probe, objects->changed.data, objects->tables.data,
					  objects->changed.len);

	for (size_t i = 0; i < objects->changed.len; i++) {
		uint32_t number = objects->changed.data[i];
		struct object *object = objects->all[number];

		if (rc < 0 && object && object->table.nrows) {
			objects->rows -= object->table.nrows;
			object->table = (struct object_table){0};
			object->fit = OBJECTS_NO_TABLE;
			lost++;
		}
		if (objects->keys[number] == GOING)
			objects->keys[number] = FREE;
	}
	drop_changes(objects);
	return lost;
}

static bool take_number(struct objects *objects, uint32_t *number)
{
	while (!find_key(objects, FREE, number)) {
		if (!objects->make_room(objects->arg))
			return false;
		objects_flush(objects);
	}
	return true;
}

static bool add_object(struct objects *objects, const struct modules *modules, const struct map_entry *entry,
		       struct module *module, uint64_t key, uint32_t *number)
{
	struct object *object = take_number(objects, number) ? create_object(modules, entry, module) : NULL;

	if (!object)
		return false;
	objects->keys[*number] = key;
	pthread_mutex_lock(&objects->lock);
	objects->all[*number] = object;
	pthread_mutex_unlock(&objects->lock);
	return true;
}

/* False: it is not known from which address of the file on. */
static bool find_start(const struct object *object, uint64_t offset, uint64_t *vaddr)
{
	for (uint32_t i = 0; i < object->nstarts; i++)
		if (object->starts[i].offset == offset) {
			*vaddr = object->starts[i].vaddr;
			return true;
		}
	return false;
}

uint32_t objects_take(struct objects *objects, const struct modules *modules, const struct map_entry *entry,
		      struct module *module, uint64_t vaddr, enum objects_fit *fit)
{
	struct image *image = module->image; /* also if it is taken */
	uint64_t key = objects_key(module), known;
	struct object *object;
	uint32_t number;

	*fit = OBJECTS_FIT;
	if (!key)
		return OFFCPU_NO_OBJECT;
	if (!find_key(objects, key, &number) && !add_object(objects, modules, entry, module, key, &number)) {
		*fit = OBJECTS_NO_ROOM;
		return OFFCPU_NO_OBJECT;
	}
	object = objects->all[number];
	if (!object->taken++)
		add_table(objects, object, number, image);
	if (!find_start(object, entry->offset, &known) && object->nstarts < MAX_STARTS)
		object->starts[object->nstarts++] = (struct start){.offset = entry->offset, .vaddr = vaddr};
	*fit = object->fit;
	return number;
}

bool objects_take_known(struct objects *objects, uint64_t identity, const struct map_entry *entry, uint32_t *number,
			uint64_t *vaddr, enum objects_fit *fit)
{
	struct object *object;

	if (!find_key(objects, identity, number))
		return false;
	object = objects->all[*number];
	if (!object->taken || !find_start(object, entry->offset, vaddr))
		return false;
	object->taken++;
	*fit = object->fit;
	return true;
}

void objects_take_again(struct objects *objects, uint32_t number)
{
	objects->all[number]->taken++;
}

void objects_give(struct objects *objects, uint32_t number)
{
	struct object *object = objects->all[number];
	bool has_table;

	if (--object->taken)
		return;
	has_table = object->table.nrows;
	remove_table(objects, object, number);
	if (object->kept)
		return; /* nobody can keep it any more but who has taken it: the lock is not needed to look */
	pthread_mutex_lock(&objects->lock);
	objects->all[number] = NULL;
	pthread_mutex_unlock(&objects->lock);
	objects->keys[number] = has_table ? GOING : FREE;
	destroy_object(object);
}

struct object_table objects_table(const struct objects *objects, uint32_t number)
{
	return objects->all[number]->table;
}

void objects_keep(struct objects *objects, uint32_t number)
{
	pthread_mutex_lock(&objects->lock);
	objects->all[number]->kept = true;
	pthread_mutex_unlock(&objects->lock);
}

static void wake(struct object *object)
{
	struct image *image = NULL;

	if (object->memory)
		image_open_memory(object->memory, object->len, NULL, &image);
	else if (object->fd >= 0)
		image_open_fd(steal_fd(&object->fd), NULL, &image);
	read_object(object, image);
}

struct module *objects_module(struct objects *objects, uint32_t number)
{
	struct module *module = NULL;
	struct object *object;

	if (number >= objects->limits.files)
		return NULL;
	pthread_mutex_lock(&objects->lock);
	object = objects->all[number];
	if (object && object->kept) {
		if (!object->module)
			wake(object);
		module = object->module;
	}
	pthread_mutex_unlock(&objects->lock);
	return module;
}
