/* SPDX-License-Identifier: MIT */
#include "offcpu/tables.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "offcpu/process_files.h"
#include "unwind/bpf_rows.h"

enum {
	MAX_OBJECTS = 4096,
	MAX_MAPPINGS = 4096, /* of one process: what BPF searches */
	ALL_MAPPINGS = 1 << 18,
	PLACE_SHIFT = 48,
};

struct object {
	struct module *module;
	uint64_t key;	/* of the file */
	uint64_t base;	/* of the rows */
	uint32_t nrows; /* 0: BPF has no table */
};

/* A mapping as we need it to name addresses. */
struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t bias; /* address - bias = address in the file */
	uint32_t object;
};

struct mappings {
	VEC_FIELDS(struct mapping); /* by rising address */
};

struct process {
	pid_t tgid;
	uint32_t first; /* its slots in BPF's array */
	uint32_t room;
	struct mappings mappings;
};

struct slots {
	uint32_t first;
	uint32_t count;
};

/* One thread changes it, and takes the lock to do so; others only look addresses up, under the lock. */
struct tables {
	struct offcpu_probe *probe;
	pthread_mutex_t lock;
	VEC(struct object *) objects;
	struct u64map by_key; /* key of a file to its number + 1 */
	VEC(struct process *) processes;
	struct u64map by_tgid; /* to struct process; 0: forgotten */
	VEC(struct slots) free;
	uint32_t used; /* slots from 0 */
	struct tables_losses losses;
};

struct tables *tables_create(struct offcpu_probe *probe)
{
	struct tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->probe = probe;
	pthread_mutex_init(&tables->lock, NULL);
	return tables;
}

static void destroy_process(struct process *process)
{
	vec_deinit(&process->mappings);
	free(process);
}

void tables_destroy(struct tables *tables)
{
	if (!tables)
		return;
	for (size_t i = 0; i < tables->objects.len; i++) {
		module_destroy(tables->objects.data[i]->module);
		free(tables->objects.data[i]);
	}
	for (size_t i = 0; i < tables->processes.len; i++)
		destroy_process(tables->processes.data[i]);
	vec_deinit(&tables->objects);
	vec_deinit(&tables->processes);
	vec_deinit(&tables->free);
	u64map_deinit(&tables->by_key);
	u64map_deinit(&tables->by_tgid);
	pthread_mutex_destroy(&tables->lock);
	free(tables);
}

/* What makes two files the same: for those in memory, the vDSO, their build-id. */
static uint64_t key_of(const struct image *image)
{
	uint64_t identity = image_identity(image);
	const char *id = image_build_id(image);

	if (!identity && id)
		identity = hash_bytes(HASH_SEED, id, strlen(id));
	return identity;
}

/* Makes the table of a new file for BPF. Without one its code is walked by frame pointer. */
static void upload(struct tables *tables, struct object *object, uint32_t number)
{
	struct bpf_rows rows = {0};

	if (bpf_rows_build(object->module->image, arch_host(), NULL, &rows) == 0 && rows.len &&
	    offcpu_probe_set_object(tables->probe, number, rows.data, rows.len) == 0) {
		object->base = rows.base;
		object->nrows = (uint32_t)rows.len;
	}
	bpf_rows_deinit(&rows);
}

static struct object *create_object(struct module *module, uint64_t key)
{
	struct object *object = calloc(1, sizeof(*object));
	struct image *image = module_take_image(module);

	if (!object) {
		image_destroy(image);
		return NULL;
	}
	object->key = key;
	if (module_create(image, module->info.path, NULL, &object->module) < 0) {
		free(object);
		return NULL;
	}
	return object;
}

/* The number of the module's file; OFFCPU_NO_OBJECT when it cannot be had. Takes the image of a new one. */
static uint32_t find_object(struct tables *tables, struct module *module, struct u64map *seen)
{
	uint64_t key, *slot, *local;
	struct object *object;
	bool created;

	/* Several mappings of one module: its image may be taken already. */
	local = u64map_put(seen, (uintptr_t)module, &created);
	if (!local)
		return OFFCPU_NO_OBJECT;
	if (!created)
		return (uint32_t)*local;
	*local = OFFCPU_NO_OBJECT;
	key = module->image ? key_of(module->image) : 0;
	slot = key ? u64map_put(&tables->by_key, key, &created) : NULL;
	if (!slot)
		return OFFCPU_NO_OBJECT;
	if (!*slot) {
		if (tables->objects.len >= MAX_OBJECTS) {
			tables->losses.objects++;
			return OFFCPU_NO_OBJECT;
		}
		object = create_object(module, key);
		if (!object)
			return OFFCPU_NO_OBJECT;
		upload(tables, object, (uint32_t)tables->objects.len);
		pthread_mutex_lock(&tables->lock);
		if (vec_push(&tables->objects, object))
			*slot = tables->objects.len;
		pthread_mutex_unlock(&tables->lock);
		if (!*slot) {
			module_destroy(object->module);
			free(object);
			return OFFCPU_NO_OBJECT;
		}
	}
	*local = *slot - 1;
	return (uint32_t)*local;
}

static struct process *get_process(struct tables *tables, pid_t tgid)
{
	bool created;
	uint64_t *slot = u64map_put(&tables->by_tgid, (uint64_t)tgid, &created);
	struct process *process;

	if (!slot || *slot)
		return slot ? (struct process *)(uintptr_t)*slot : NULL;
	process = calloc(1, sizeof(*process));
	if (!process || !vec_push(&tables->processes, process)) {
		free(process);
		return NULL;
	}
	process->tgid = tgid;
	*slot = (uintptr_t)process;
	return process;
}

/* Room for so many mappings in BPF's array. */
static bool take_slots(struct tables *tables, uint32_t count, struct slots *out)
{
	for (size_t i = 0; i < tables->free.len; i++) {
		if (tables->free.data[i].count < count)
			continue;
		*out = tables->free.data[i];
		tables->free.data[i] = tables->free.data[--tables->free.len];
		return true;
	}
	if (count > ALL_MAPPINGS - tables->used)
		return false;
	*out = (struct slots){.first = tables->used, .count = count};
	tables->used += count;
	return true;
}

static void give_back(struct tables *tables, struct process *process)
{
	if (process->room)
		vec_push(&tables->free, (struct slots){.first = process->first, .count = process->room});
	process->room = 0;
}

/* The new mappings get slots of their own, so that BPF never sees half of them. */
static bool publish(struct tables *tables, struct process *process)
{
	struct offcpu_maps maps = {.count = (uint32_t)process->mappings.len};
	struct slots slots;

	if (!take_slots(tables, maps.count ? maps.count : 1, &slots)) {
		tables->losses.mappings += maps.count;
		return false;
	}
	maps.first = slots.first;
	for (uint32_t i = 0; i < maps.count; i++) {
		const struct mapping *m = &process->mappings.data[i];
		const struct object *object = m->object == OFFCPU_NO_OBJECT ? NULL : tables->objects.data[m->object];
		struct offcpu_mapping record = {
			.start = m->start,
			.end = m->end,
			.bias = m->bias + (object ? object->base : 0),
			.object = object && object->nrows ? m->object : OFFCPU_NO_OBJECT,
			.nrows = object ? object->nrows : 0,
		};

		offcpu_probe_set_mapping(tables->probe, maps.first + i, &record);
	}
	offcpu_probe_set_process(tables->probe, process->tgid, &maps);
	give_back(tables, process);
	process->first = slots.first;
	process->room = slots.count;
	return true;
}

static bool list_mappings(struct tables *tables, const struct process_files *files, struct mappings *out)
{
	struct u64map seen = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < files->snap->maps.len; i++) {
		const struct map_entry *e = &files->snap->maps.data[i];
		struct mapping mapping = {.start = e->start, .end = e->end, .bias = e->start, .object = OFFCPU_NO_OBJECT};
		struct module *module;
		uint64_t vaddr;

		if (!(e->perms & MAP_PERM_EXEC))
			continue;
		if (out->len >= MAX_MAPPINGS) {
			tables->losses.mappings++;
			continue;
		}
		module = modules_find(files->modules, e->start, &vaddr);
		if (module) {
			mapping.bias = e->start - vaddr;
			mapping.object = find_object(tables, module, &seen);
		}
		ok = vec_push(out, mapping);
	}
	u64map_deinit(&seen);
	return ok;
}

int tables_read_process(struct tables *tables, pid_t tgid, struct err *err)
{
	struct process_files files = {0};
	struct mappings mappings = {0};
	struct process *process;
	int rc = process_files_open(tgid, err, &files);

	if (rc == 0 && !list_mappings(tables, &files, &mappings))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0) {
		pthread_mutex_lock(&tables->lock);
		process = get_process(tables, tgid);
		if (process) {
			struct mappings old = process->mappings;

			process->mappings = mappings;
			mappings = old;
		}
		pthread_mutex_unlock(&tables->lock);
		if (!process)
			rc = err_set(err, ENOMEM, "out of memory");
		else if (!publish(tables, process))
			rc = err_set(err, ENOSPC, "more than %d executable mappings", ALL_MAPPINGS);
	}
	vec_deinit(&mappings);
	process_files_close(&files);
	offcpu_probe_answered(tables->probe, tgid);
	return rc;
}

void tables_forget_process(struct tables *tables, pid_t tgid)
{
	uint64_t *slot;

	pthread_mutex_lock(&tables->lock);
	slot = u64map_find(&tables->by_tgid, (uint64_t)tgid);
	offcpu_probe_forget_process(tables->probe, tgid);
	if (slot && *slot) {
		struct process *process = (struct process *)(uintptr_t)*slot;

		give_back(tables, process);
		process->mappings.len = 0;
	}
	pthread_mutex_unlock(&tables->lock);
}

static const struct mapping *find_mapping(const struct process *process, uint64_t address)
{
	size_t low = 0, high = process->mappings.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (process->mappings.data[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low && address < process->mappings.data[low - 1].end ? &process->mappings.data[low - 1] : NULL;
}

uint64_t tables_place(struct tables *tables, pid_t tgid, uint64_t address)
{
	const struct mapping *mapping = NULL;
	uint64_t *slot, place = 0;

	pthread_mutex_lock(&tables->lock);
	slot = u64map_find(&tables->by_tgid, (uint64_t)tgid);
	if (slot && *slot)
		mapping = find_mapping((const struct process *)(uintptr_t)*slot, address);
	if (mapping && mapping->object != OFFCPU_NO_OBJECT)
		place = (uint64_t)(mapping->object + 1) << PLACE_SHIFT | (address - mapping->bias);
	pthread_mutex_unlock(&tables->lock);
	return place;
}

struct module *tables_module(void *ctx, uint64_t place, uint64_t *vaddr)
{
	struct tables *tables = ctx;
	uint64_t number = place >> PLACE_SHIFT;
	struct module *module = NULL;

	*vaddr = place & ((UINT64_C(1) << PLACE_SHIFT) - 1);
	pthread_mutex_lock(&tables->lock);
	if (number && number <= tables->objects.len)
		module = tables->objects.data[number - 1]->module;
	pthread_mutex_unlock(&tables->lock);
	return module;
}

struct tables_losses tables_losses(const struct tables *tables)
{
	return tables->losses;
}
