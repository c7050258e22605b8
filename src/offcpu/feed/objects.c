/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/objects.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "offcpu/feed/file_pin.h"
#include "target/mapped_file.h"
#include "target/target.h"
#include "unwind/bpf_rows.h"

enum {
	MAX_STARTS = 4,
	MAX_CHANGES = 256, /* each is a descriptor */
};

/* Instead of a key. FREE: the number can be given to a file; GOING: not until BPF has dropped the old file's table. */
static const uint64_t FREE = 0, GOING = UINT64_MAX;

/* A file offset from which code is mapped, and its address in the file. */
struct start {
	uint64_t offset;
	uint64_t vaddr;
};

/* A file is not read until one of its addresses is to be named: an image takes ten times as much memory. */
struct object {
	char *path;
	int fd;       /* -1: it is in memory only, or has been read */
	struct root *root; /* debug files may be below it; or NULL */
	void *memory; /* of `len` bytes, or NULL */
	size_t len;
	struct module *module; /* NULL: not read yet */
	bool reading;          /* a thread is reading it, without the lock */
	struct start starts[MAX_STARTS];
	uint32_t nstarts;
	uint32_t ntold; /* of these, the ones that BPF knows the file by */
	struct file_pin pin;
	struct object_table table;
	enum objects_fit fit;
	uint32_t taken;
	bool ready; /* BPF has its table, or it has none */
	bool kept;
};

/* Changes that BPF has not been given yet. */
struct changes {
	VEC(uint32_t) objects; /* whose tables will change */
	VEC(int) tables;       /* the new tables; `none` to remove one */
	VEC(uint32_t) serials; /* of the new tables; 0 to remove one */
};

struct objects {
	struct offcpu_probe *probe;
	pthread_mutex_t *taking;
	pthread_mutex_t flushing; /* taken before that one: changes are given to BPF one after the other */
	struct objects_limits limits;
	struct roots *roots;
	room_fn make_room;
	void *arg;
	uint64_t *keys;        /* of the files, by number; or FREE or GOING */
	uint64_t rows;         /* that BPF has, or will have */
	int none;              /* an empty table */
	struct changes changes;
	uint32_t serial; /* of the last table */
	bool ended;      /* no more tables are made */
	bool indexed;
	struct u64map by_file; /* a hash of what BPF knows a file by, to its number */
	uint32_t lost; /* tables that BPF could not be given since this was last reported */
	uint64_t made;

	pthread_mutex_t lock; /* guards what follows: the thread that takes and gives back changes it, others look */
	pthread_cond_t read;  /* signalled when an object has been read */
	struct object **all;  /* by number */
};

DEFINE_CLEANUP(objects, struct objects *, objects_destroy)

static void flush(struct objects *objects);

struct objects *objects_create(struct offcpu_probe *probe, pthread_mutex_t *lock, const struct objects_limits *limits,
			       room_fn make_room, void *arg)
{
	_cleanup_(cleanup_objects) struct objects *objects = calloc(1, sizeof(*objects));

	if (!objects)
		return NULL;
	pthread_mutex_init(&objects->flushing, NULL);
	pthread_mutex_init(&objects->lock, NULL);
	pthread_cond_init(&objects->read, NULL);
	objects->probe = probe;
	objects->taking = lock;
	objects->limits = *limits;
	objects->make_room = make_room;
	objects->arg = arg;
	objects->keys = calloc(limits->files, sizeof(*objects->keys));
	objects->all = calloc(limits->files, sizeof(*objects->all));
	objects->none = -1;
	objects->roots = roots_create();
	return objects->keys && objects->all && objects->roots ? steal_ptr(objects) : NULL;
}

static void destroy_object(struct roots *roots, struct object *object)
{
	if (!object)
		return;
	module_destroy(object->module);
	roots_give(roots, object->root);
	file_pin_deinit(&object->pin);
	if (object->fd >= 0)
		close(object->fd);
	free(object->memory);
	free(object->path);
	free(object);
}

static void drop_changes(struct changes *changes, int none)
{
	for (size_t i = 0; i < changes->tables.len; i++)
		if (changes->tables.data[i] != none)
			close(changes->tables.data[i]);
	vec_deinit(&changes->objects);
	vec_deinit(&changes->tables);
	vec_deinit(&changes->serials);
}

void objects_destroy(struct objects *objects)
{
	if (!objects)
		return;
	for (uint32_t i = 0; objects->all && i < objects->limits.files; i++)
		destroy_object(objects->roots, objects->all[i]);
	drop_changes(&objects->changes, objects->none);
	if (objects->none >= 0)
		close(objects->none);
	u64map_deinit(&objects->by_file);
	roots_destroy(objects->roots);
	pthread_cond_destroy(&objects->read);
	pthread_mutex_destroy(&objects->lock);
	pthread_mutex_destroy(&objects->flushing);
	free(objects->all);
	free(objects->keys);
	free(objects);
}

uint64_t objects_key(const struct module *module)
{
	uint64_t identity = module->image ? image_identity(module->image) : 0;
	struct span bytes;

	if (identity || !module->image || module->jit)
		return identity;
	bytes = image_raw(module->image);
	return bytes.data ? hash_bytes(HASH_SEED, bytes.data, bytes.len) | 1 : 0;
}

/*
 * The number that has the key. A plain search: less than 32 KiB, and each file has cost hundreds of microseconds
 * before.
 */
static bool find_key(const struct objects *objects, uint64_t key, uint32_t *number)
{
	for (uint32_t i = 0; i < objects->limits.files; i++)
		if (objects->keys[i] == key) {
			*number = i;
			return true;
		}
	return false;
}

/* An image from the process's memory uses the copy of that memory. */
static void copy_memory(struct object *object, const struct image *image)
{
	struct span bytes = image_raw(image);

	object->memory = bytes.data ? malloc(bytes.len) : NULL;
	if (!object->memory)
		return;
	memcpy(object->memory, bytes.data, bytes.len);
	object->len = bytes.len;
}

static struct module *create_module(struct image *image, const struct object *object)
{
	struct module *module = NULL;

	if (!image || module_create(image, object->path, NULL, &module) < 0)
		return NULL;
	module->root_fd = root_fd(object->root);
	return module;
}

/* Where a new file is: open already, or mapped by a process. */
struct origin {
	int fd;                        /* -1: to be opened; taken over */
	struct root *root;             /* if it is open */
	const struct modules *modules; /* NULL: it is open */
	const struct map_entry *entry;
};

static bool open_object(struct objects *objects, const struct origin *from, struct module *module, struct object *object)
{
	const struct target *target = from->modules ? modules_target(from->modules) : NULL;
	bool ok;

	object->path = strdup(module->info.path);
	if (!object->path)
		return false;
	object->root = roots_take(objects->roots, target ? target->root_fd : root_fd(from->root));
	if (target && image_identity(module->image))
		object->fd = mapped_file_open(target, from->entry, false, NULL, NULL);
	else if (target)
		copy_memory(object, module->image);
	ok = object->fd >= 0 || object->memory;
	if (ok)
		file_pin_init(&object->pin, objects->probe, object->fd, module->image, from->entry);
	/* When the process has just ended, or no descriptors are left, the copy in memory is kept instead. */
	if (!ok && image_identity(module->image))
		object->module = create_module(module_take_image(module), object);
	return ok || object->module;
}

static struct object *create_object(struct objects *objects, const struct origin *from, struct module *module)
{
	struct object *object = calloc(1, sizeof(*object));

	if (!object) {
		if (from->fd >= 0)
			close(from->fd);
		return NULL;
	}
	object->fd = from->fd;
	if (open_object(objects, from, module, object))
		return object;
	destroy_object(objects->roots, object);
	return NULL;
}

static bool has_room(struct objects *objects, size_t rows)
{
	while (objects->rows + rows > objects->limits.rows)
		if (!objects->make_room(objects->arg))
			return false;
	return true;
}

/* Gives the object this table at the next flush, which closes it. */
static bool change(struct objects *objects, uint32_t number, int table, uint32_t serial)
{
	struct changes *changes = &objects->changes;

	if (!vec_reserve(&changes->objects, changes->objects.len + 1) ||
	    !vec_reserve(&changes->tables, changes->tables.len + 1) ||
	    !vec_reserve(&changes->serials, changes->serials.len + 1))
		return false;
	vec_push(&changes->objects, number);
	vec_push(&changes->tables, table);
	vec_push(&changes->serials, serial);
	return true;
}

/* Makes room for the rows, counts them, and makes a table of them. */
static int create_table(struct objects *objects, const struct bpf_rows *rows, uint32_t serial)
{
	int table;

	if (!has_room(objects, rows->len))
		return -1;
	objects->rows += rows->len;
	pthread_mutex_unlock(objects->taking);
	table = offcpu_probe_create_table(objects->probe, rows->data, rows->len, serial);
	pthread_mutex_lock(objects->taking);
	if (table < 0)
		objects->rows -= rows->len;
	return table;
}

/*
 * Tells BPF how the file may be mapped, once its table is made. That comes a little later, with others: until then a walk
 * that comes to this file ends there.
 */
static void tell_starts(struct objects *objects, struct object *object, uint32_t number)
{
	const bool made = object->ready || object->table.nrows;

	for (; made && object->taken && object->ntold < object->nstarts; object->ntold++) {
		const struct start *start = &object->starts[object->ntold];
		const struct offcpu_file_code code = {
			.shift = object->table.base - start->vaddr,
			.object = number,
			.nrows = object->table.nrows,
			.serial = object->table.serial,
		};

		file_pin_tell(&object->pin, objects->probe, start->offset, &code);
	}
}

/*
 * Two overlays show the same file below them as two, each with numbers of its own, but it is mapped as the one that it is: then
 * BPF was told of one of them, and others remain.
 */
static void tell_twins(struct objects *objects, const struct object *gone)
{
	for (uint32_t i = 0; i < objects->limits.files; i++) {
		struct object *object = objects->all[i];

		if (!object || object == gone || !file_pin_is_of(&object->pin, &gone->pin.file))
			continue;
		object->ntold = 0;
		tell_starts(objects, object, i);
	}
}

static void forget_starts(struct objects *objects, struct object *object)
{
	const bool was_told = object->ntold;

	while (object->ntold)
		file_pin_forget(&object->pin, objects->probe, object->starts[--object->ntold].offset);
	if (was_told && object->pin.known)
		tell_twins(objects, object);
}

static void make_ready(struct objects *objects, struct object *object, uint32_t number)
{
	object->ready = true;
	objects->made++;
	tell_starts(objects, object, number);
}

/* Makes the table of a file for BPF. */
static void add_table(struct objects *objects, struct object *object, uint32_t number, struct image *image)
{
	const uint32_t serial = ++objects->serial;
	struct bpf_rows rows = {0};
	bool any;
	int table;

	object->ready = false;
	object->table.serial = serial;
	pthread_mutex_unlock(objects->taking);
	any = bpf_rows_build(image, arch_host(), NULL, &rows) == 0 && rows.len;
	pthread_mutex_lock(objects->taking);
	object->fit = any ? OBJECTS_NO_TABLE : OBJECTS_FIT;
	table = any ? create_table(objects, &rows, serial) : -1;
	if (table >= 0 && change(objects, number, table, serial)) {
		object->table = (struct object_table){.base = rows.base, .nrows = (uint32_t)rows.len, .serial = serial};
		object->fit = rows.cut ? OBJECTS_NO_TABLE : OBJECTS_FIT;
	} else if (table >= 0) {
		objects->rows -= rows.len;
		close(table);
	}
	if (!object->table.nrows)
		make_ready(objects, object, number);
	bpf_rows_deinit(&rows);
	if (objects->changes.objects.len >= MAX_CHANGES)
		flush(objects);
}

static void remove_table(struct objects *objects, struct object *object, uint32_t number)
{
	static const struct unwind_row none = {.kind = UNWIND_NONE};

	forget_starts(objects, object);
	if (!object->table.nrows)
		return;
	objects->rows -= object->table.nrows;
	object->table = (struct object_table){0};
	object->ready = false;
	if (objects->none < 0)
		objects->none = offcpu_probe_create_table(objects->probe, &none, 1, 0);
	if (objects->none >= 0)
		change(objects, number, objects->none, 0);
}

/*
 * BPF has accepted or refused a table, or has dropped one (serial 0). Meanwhile the object may have been given back and taken
 * again: then another table is being made for it, and this one does not count.
 */
static void settle(struct objects *objects, uint32_t number, uint32_t serial, bool refused)
{
	struct object *object = objects->all[number];
	bool is_current = serial && object && object->table.serial == serial;

	if (refused && is_current && object->table.nrows) {
		objects->rows -= object->table.nrows;
		forget_starts(objects, object);
		object->table.nrows = 0; /* BPF may have found mappings by the rest already */
		object->fit = OBJECTS_NO_TABLE;
		objects->lost++;
	}
	if (is_current)
		make_ready(objects, object, number);
	if (!serial && objects->keys[number] == GOING)
		objects->keys[number] = FREE;
}

/*
 * BPF does not find removed tables, but may still be using one until the call that sets the objects has returned. New ones
 * it finds at once.
 */
static void flush(struct objects *objects)
{
	struct changes changes;
	int rc, none;

	pthread_mutex_unlock(objects->taking);
	pthread_mutex_lock(&objects->flushing);
	pthread_mutex_lock(objects->taking);
	changes = objects->changes;
	none = objects->none;
	objects->changes = (struct changes){0};
	pthread_mutex_unlock(objects->taking);
	rc = offcpu_probe_set_objects(objects->probe, changes.objects.data, changes.tables.data, changes.objects.len);
	pthread_mutex_lock(objects->taking);
	for (size_t i = 0; i < changes.objects.len; i++)
		settle(objects, changes.objects.data[i], changes.serials.data[i], rc < 0);
	drop_changes(&changes, none);
	pthread_mutex_unlock(&objects->flushing);
}

uint32_t objects_flush(struct objects *objects)
{
	uint32_t lost;

	flush(objects);
	lost = objects->lost;
	objects->lost = 0;
	return lost;
}

static bool take_number(struct objects *objects, uint32_t *number)
{
	while (!find_key(objects, FREE, number)) {
		if (!objects->changes.objects.len && !objects->make_room(objects->arg))
			return false;
		flush(objects); /* everything given back so far is free then */
	}
	return true;
}

static bool add_object(struct objects *objects, const struct origin *from, struct module *module, uint64_t key,
		       uint32_t *number)
{
	struct object *object;

	pthread_mutex_unlock(objects->taking);
	object = create_object(objects, from, module);
	pthread_mutex_lock(objects->taking);
	if (!object || !take_number(objects, number)) {
		destroy_object(objects->roots, object);
		return false;
	}
	objects->keys[*number] = key;
	pthread_mutex_lock(&objects->lock);
	objects->all[*number] = object;
	pthread_mutex_unlock(&objects->lock);
	return true;
}

/* False when it is not known which address of the file is mapped there. */
static bool find_start(const struct object *object, uint64_t offset, uint64_t *vaddr)
{
	for (uint32_t i = 0; i < object->nstarts; i++)
		if (object->starts[i].offset == offset) {
			*vaddr = object->starts[i].vaddr;
			return true;
		}
	return false;
}

/* The number of a file that is known, or is now. */
static bool find_or_add(struct objects *objects, const struct origin *from, struct module *module, uint64_t key,
			uint32_t *number)
{
	if (!find_key(objects, key, number))
		return add_object(objects, from, module, key, number);
	if (from->fd >= 0)
		close(from->fd);
	return true;
}

static uint32_t take(struct objects *objects, const struct origin *from, struct module *module, uint64_t vaddr,
		     enum objects_fit *fit)
{
	const struct map_entry *entry = from->entry;
	struct image *image = module->image; /* even if it is taken */
	uint64_t key = objects_key(module), known;
	struct object *object;
	uint32_t number;

	*fit = OBJECTS_FIT;
	if (!key && from->fd >= 0)
		close(from->fd);
	if (!key)
		return OFFCPU_NO_OBJECT;
	if (!find_or_add(objects, from, module, key, &number)) {
		*fit = OBJECTS_NO_ROOM;
		return OFFCPU_NO_OBJECT;
	}
	object = objects->all[number];
	if (!object->taken++ && !objects->ended)
		add_table(objects, object, number, image);
	if (!find_start(object, entry->offset, &known) && object->nstarts < MAX_STARTS)
		object->starts[object->nstarts++] = (struct start){.offset = entry->offset, .vaddr = vaddr};
	tell_starts(objects, object, number);
	*fit = object->fit;
	return number;
}

uint32_t objects_take(struct objects *objects, const struct modules *modules, const struct map_entry *entry,
		      struct module *module, uint64_t vaddr, enum objects_fit *fit)
{
	const struct origin from = {.fd = -1, .modules = modules, .entry = entry};

	return take(objects, &from, module, vaddr, fit);
}

uint32_t objects_take_open(struct objects *objects, const struct open_file *file, struct module *module, uint64_t vaddr,
			   enum objects_fit *fit)
{
	const struct map_entry entry = {.offset = file->offset, .path = module->info.path};
	const struct origin from = {.fd = file->fd, .root = file->root, .entry = &entry};

	return take(objects, &from, module, vaddr, fit);
}

bool objects_take_known(struct objects *objects, uint64_t key, const struct map_entry *entry, uint32_t *number,
			uint64_t *vaddr, enum objects_fit *fit)
{
	struct object *object;

	if (!key || !find_key(objects, key, number))
		return false;
	object = objects->all[*number];
	if (!object->taken || !object->ready || !find_start(object, entry->offset, vaddr))
		return false;
	object->taken++;
	*fit = object->fit;
	return true;
}

void objects_take_again(struct objects *objects, uint32_t number)
{
	objects->all[number]->taken++;
}

bool objects_take_found(struct objects *objects, uint32_t number, uint32_t serial)
{
	struct object *object = number < objects->limits.files ? objects->all[number] : NULL;

	if (!object || !object->taken || object->table.serial != serial)
		return false;
	object->taken++;
	return true;
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
		return; /* only those who have taken it can keep it, so this needs no lock */
	pthread_mutex_lock(&objects->lock);
	objects->all[number] = NULL;
	pthread_mutex_unlock(&objects->lock);
	objects->keys[number] = has_table ? GOING : FREE;
	destroy_object(objects->roots, object);
}

uint64_t objects_made(const struct objects *objects)
{
	return objects->made;
}

struct object_table objects_table(const struct objects *objects, uint32_t number)
{
	return objects->all[number]->table;
}

struct roots *objects_roots(struct objects *objects)
{
	return objects->roots;
}

void objects_end_tables(struct objects *objects)
{
	objects->ended = true;
}

/* Of the file, wherever it is mapped from. */
static uint64_t hash_file(const struct offcpu_file *file)
{
	return hash_u64(hash_u64(hash_u64(HASH_SEED, file->inode), file->changed_s), file->changed_ns) | 1;
}

static void index_files(struct objects *objects)
{
	bool created;

	for (uint32_t i = 0; i < objects->limits.files; i++) {
		const struct object *object = objects->all[i];
		uint64_t *slot = NULL;

		if (object && object->pin.known)
			slot = u64map_put(&objects->by_file, hash_file(&object->pin.file), &created);
		if (slot)
			*slot = i;
	}
	objects->indexed = true;
}

bool objects_find_file(struct objects *objects, const struct offcpu_file *file, uint32_t *number)
{
	const uint64_t *slot;

	if (!objects->indexed)
		index_files(objects);
	slot = u64map_find(&objects->by_file, hash_file(file));
	if (!slot || !file_pin_is_of(&objects->all[*slot]->pin, file))
		return false;
	*number = (uint32_t)*slot;
	return true;
}

void objects_keep(struct objects *objects, uint32_t number)
{
	pthread_mutex_lock(&objects->lock);
	objects->all[number]->kept = true;
	pthread_mutex_unlock(&objects->lock);
}

/*
 * Called with the lock held, which is released while the file is read: that may take long, and the thread that empties
 * the ring needs the lock to keep objects.
 */
static void wake(struct objects *objects, struct object *object)
{
	struct image *image = NULL;
	struct module *module;
	int fd = steal_fd(&object->fd);

	object->reading = true;
	pthread_mutex_unlock(&objects->lock);
	if (object->memory)
		image_open_memory(object->memory, object->len, NULL, &image);
	else if (fd >= 0)
		image_open_fd(fd, NULL, &image);
	module = create_module(image, object);
	pthread_mutex_lock(&objects->lock);
	object->module = module;
	object->reading = false;
	pthread_cond_broadcast(&objects->read);
}

struct module *objects_module(struct objects *objects, uint32_t number)
{
	struct module *module = NULL;
	struct object *object;

	if (number >= objects->limits.files)
		return NULL;
	pthread_mutex_lock(&objects->lock);
	object = objects->all[number];
	if (object && object->kept) { /* so it will not go away */
		while (object->reading)
			pthread_cond_wait(&objects->read, &objects->lock);
		if (!object->module)
			wake(objects, object);
		module = object->module;
	}
	pthread_mutex_unlock(&objects->lock);
	return module;
}

void objects_keep_names(struct objects *objects)
{
	for (uint32_t i = 0; i < objects->limits.files; i++)
		if (objects->all[i] && objects->all[i]->module)
			module_keep_symbols(objects->all[i]->module);
}
