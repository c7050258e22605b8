/* SPDX-License-Identifier: MIT */
#include "offcpu/tables.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "symbol/process_files.h"
#include "proc/process.h"
#include "unwind/bpf_rows.h"

enum {
	MAX_OBJECTS = 4096,
	MAX_MAPPINGS = 4096, /* of one process: what BPF searches */
	ALL_MAPPINGS = 1 << 18,
	MAX_SETS = 1 << 16,
	PLACE_SHIFT = 48,
};

struct object {
	struct module *module;
	uint64_t key;   /* of the file */
	uint64_t base;  /* of the rows */
	uint32_t nrows; /* 0: BPF has no table */
};

/* A mapping as we need it to name addresses. */
struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t bias; /* address - bias = address in the file */
	uint32_t object;
	uint32_t zero;
};

static_assert(sizeof(struct mapping) == 32, "mappings are compared as bytes");

struct mappings {
	VEC_FIELDS(struct mapping); /* by rising address */
};

/* The mappings of a process as they once were; never changed. */
struct set {
	uint32_t id;
	uint32_t first; /* its slots in BPF's array */
	struct mappings mappings;
};

/* Slots that can be used anew, and the set that is in them until then. */
struct slots {
	uint32_t first;
	uint32_t count;
	uint32_t set; /* 0: in others as well, which were used anew */
};

/* One thread changes it, and takes the lock to do so; others only look addresses up, under the lock. */
struct tables {
	struct offcpu_probe *probe;
	pthread_mutex_t lock;
	VEC(struct object *) objects;
	struct u64map by_key;   /* key of a file to its number + 1 */
	VEC(struct set *) sets; /* by the low half of their ids; NULL: none */
	uint32_t made;          /* sets so far */
	VEC(uint32_t) unused;   /* places there */
	struct u64map by_tgid;  /* to the id of its set; 0: forgotten */
	VEC(struct slots) free; /* those given back first come first */
	uint32_t used;          /* slots from 0 */
	struct tables_losses losses;
	bool took_memory; /* a new object lies in the snapshot that is being read */
	VEC(struct process_files) kept;
};

static uint32_t slots_of(size_t mappings)
{
	return mappings ? (uint32_t)mappings : 1;
}

struct tables *tables_create(struct offcpu_probe *probe)
{
	struct tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->probe = probe;
	pthread_mutex_init(&tables->lock, NULL);
	return tables;
}

static void destroy_set(struct set *set)
{
	if (set)
		vec_deinit(&set->mappings);
	free(set);
}

void tables_destroy(struct tables *tables)
{
	if (!tables)
		return;
	for (size_t i = 0; i < tables->objects.len; i++) {
		module_destroy(tables->objects.data[i]->module);
		free(tables->objects.data[i]);
	}
	for (size_t i = 0; i < tables->sets.len; i++)
		destroy_set(tables->sets.data[i]);
	vec_deinit(&tables->objects);
	vec_deinit(&tables->sets);
	vec_deinit(&tables->unused);
	vec_deinit(&tables->free);
	u64map_deinit(&tables->by_key);
	u64map_deinit(&tables->by_tgid);
	pthread_mutex_destroy(&tables->lock);
	for (size_t i = 0; i < tables->kept.len; i++)
		process_files_close(&tables->kept.data[i]);
	vec_deinit(&tables->kept);
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

	if (bpf_rows_build(object->module->image, arch_host(), NULL, &rows) == 0 && rows.len) {
		bool ok = offcpu_probe_set_object(tables->probe, number, rows.data, rows.len) == 0;

		object->base = rows.base;
		object->nrows = ok ? (uint32_t)rows.len : 0;
		tables->losses.objects += !ok || rows.cut;
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
		tables->took_memory |= image_identity(module->image) == 0;
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

static struct set *find_set(const struct tables *tables, uint32_t id)
{
	uint32_t index = id & (MAX_SETS - 1);

	if (!id || index >= tables->sets.len || !tables->sets.data[index] || tables->sets.data[index]->id != id)
		return NULL;
	return tables->sets.data[index];
}

static struct set *set_of(const struct tables *tables, pid_t tgid)
{
	const uint64_t *slot = u64map_find(&tables->by_tgid, (uint64_t)tgid);

	return slot ? find_set(tables, (uint32_t)*slot) : NULL;
}

static void drop_set(struct tables *tables, uint32_t id)
{
	struct set *set = find_set(tables, id);

	if (!set)
		return;
	tables->sets.data[id & (MAX_SETS - 1)] = NULL;
	destroy_set(set);
}

/* Room in BPF's array. What was never used is taken first, so that old sets last as long as can be. */
static bool take_slots(struct tables *tables, uint32_t count, uint32_t *first)
{
	if (count <= ALL_MAPPINGS - tables->used) {
		*first = tables->used;
		tables->used += count;
		return true;
	}
	for (size_t i = 0; i < tables->free.len; i++) {
		struct slots *slots = &tables->free.data[i];

		if (slots->count < count)
			continue;
		*first = slots->first;
		if (find_set(tables, slots->set))
			vec_push(&tables->unused, slots->set & (MAX_SETS - 1));
		drop_set(tables, slots->set);
		slots->set = 0;
		slots->first += count;
		slots->count -= count;
		if (!slots->count) {
			tables->free.len--;
			memmove(slots, slots + 1, (tables->free.len - i) * sizeof(*slots));
		}
		return true;
	}
	return false;
}

/* Its slots may be used anew. Until they are the set stays, for stacks on their way and for children of the process. */
static void give_back(struct tables *tables, const struct set *set)
{
	struct slots slots = {.first = set->first, .count = slots_of(set->mappings.len), .set = set->id};

	if (!vec_push(&tables->free, slots))
		tables->losses.mappings += slots.count;
}

/* The oldest of the sets whose process has ended or has another one makes room. */
static bool drop_oldest(struct tables *tables, uint32_t *index)
{
	for (size_t i = 0; i < tables->free.len; i++) {
		struct slots *slots = &tables->free.data[i];

		if (!slots->set)
			continue;
		*index = slots->set & (MAX_SETS - 1);
		drop_set(tables, slots->set);
		slots->set = 0;
		return true;
	}
	return false;
}

/* A place among the sets; the high half of the id tells it from those that were there lately. */
static bool take_id(struct tables *tables, uint32_t *id)
{
	uint32_t index = (uint32_t)tables->sets.len;

	if (tables->unused.len)
		index = tables->unused.data[--tables->unused.len];
	else if (index == MAX_SETS ? !drop_oldest(tables, &index) : !vec_push(&tables->sets, NULL))
		return false;
	*id = (1 + tables->made++ % UINT16_MAX) * MAX_SETS | index;
	return true;
}

/* Takes the mappings over when it succeeds. */
static struct set *create_set(struct tables *tables, struct mappings *mappings)
{
	struct set *set = calloc(1, sizeof(*set));

	if (!set || !take_slots(tables, slots_of(mappings->len), &set->first)) {
		free(set);
		return NULL;
	}
	set->mappings = *mappings;
	if (!take_id(tables, &set->id)) {
		give_back(tables, set);
		free(set);
		return NULL;
	}
	tables->sets.data[set->id & (MAX_SETS - 1)] = set;
	*mappings = (struct mappings){0};
	return set;
}

static int set_mapping(struct tables *tables, const struct set *set, uint32_t i)
{
	const struct mapping *m = &set->mappings.data[i];
	const struct object *object = m->object == OFFCPU_NO_OBJECT ? NULL : tables->objects.data[m->object];
	struct offcpu_mapping record = {
		.start = m->start,
		.end = m->end,
		.bias = m->bias + (object ? object->base : 0),
		.object = object && object->nrows ? m->object : OFFCPU_NO_OBJECT,
		.nrows = object ? object->nrows : 0,
		.set = set->id,
	};

	return offcpu_probe_set_mapping(tables->probe, set->first + i, &record);
}

/* The new mappings have slots of their own, so that BPF never sees half of them. */
static int publish(struct tables *tables, pid_t tgid, const struct set *set)
{
	struct offcpu_maps maps = {.first = set->first, .count = (uint32_t)set->mappings.len, .set = set->id};
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < maps.count; i++)
		rc = set_mapping(tables, set, i);
	if (rc == 0)
		rc = offcpu_probe_set_process(tables->probe, tgid, &maps);
	if (rc < 0)
		tables->losses.mappings += maps.count;
	return rc;
}

static bool list_mappings(struct tables *tables, const struct process_files *files, struct mappings *out)
{
	struct u64map seen = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < files->snap->maps.len; i++) {
		const struct map_entry *e = &files->snap->maps.data[i];
		struct mapping mapping = {
			.start = e->start, .end = e->end, .bias = e->start, .object = OFFCPU_NO_OBJECT};
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

static bool is_same(const struct mappings *a, const struct mappings *b)
{
	/* No hidden padding: see the assertion at struct mapping. */
	return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len * sizeof(*a->data)) == 0);
}

/* Makes the mappings those of the process. */
static int replace(struct tables *tables, pid_t tgid, struct mappings *mappings, struct err *err)
{
	struct set *old, *set = NULL;
	uint64_t *slot;
	bool created;
	int rc;

	pthread_mutex_lock(&tables->lock);
	old = set_of(tables, tgid);
	slot = u64map_put(&tables->by_tgid, (uint64_t)tgid, &created);
	if (slot)
		set = create_set(tables, mappings);
	if (set)
		*slot = set->id;
	pthread_mutex_unlock(&tables->lock);
	if (!set) {
		tables->losses.mappings += mappings->len;
		return err_set(err, ENOSPC, "more than %d executable mappings", ALL_MAPPINGS);
	}
	rc = publish(tables, tgid, set);
	if (old)
		give_back(tables, old);
	return rc < 0 ? err_set(err, -rc, "giving BPF the maps of process %d: %s", (int)tgid, strerror(-rc)) : 0;
}

/* Changes with every exec, and when the number is given to another process. */
static uint64_t generation_of(pid_t tgid)
{
	struct process_info info;
	struct process process;
	uint64_t generation = 0;

	if (process_open(tgid, NULL, &process) < 0)
		return 0;
	if (process_info(&process, &info) == 0)
		generation = hash_u64(process_generation(&process), info.start_time);
	process_close(&process);
	return generation;
}

/* The bytes of an image in memory, the vDSO, belong to the snapshot: it stays when such an image was taken from it. */
static void keep_or_close(struct tables *tables, struct process_files *files)
{
	if (!tables->took_memory || !vec_push(&tables->kept, *files))
		process_files_close(files);
	tables->took_memory = false;
}

static int read_process(struct tables *tables, pid_t tgid, struct err *err, bool *news)
{
	uint64_t generation = generation_of(tgid);
	struct process_files files = {0};
	struct mappings mappings = {0};
	const struct set *set = set_of(tables, tgid);
	int rc = process_files_open(tgid, err, &files);

	*news = false;
	if (rc == 0 && !list_mappings(tables, &files, &mappings))
		rc = err_set(err, ENOMEM, "out of memory");
	keep_or_close(tables, &files);
	if (rc == 0 && set && is_same(&set->mappings, &mappings)) {
		*news = !offcpu_probe_has_set(tables->probe, tgid, set->id);
		rc = *news ? publish(tables, tgid, set) : 0;
	} else if (rc == 0) {
		rc = replace(tables, tgid, &mappings, err);
		*news = rc == 0;
	}
	vec_deinit(&mappings);
	set = set_of(tables, tgid);
	if (rc == 0 && set && generation_of(tgid) != generation) {
		offcpu_probe_forget_process(tables->probe, tgid,
					    set->id); /* they are of another program: it will be asked for */
		*news = true;
	}
	return rc;
}

int tables_read_process(struct tables *tables, pid_t tgid, struct err *err)
{
	bool news;
	int rc = read_process(tables, tgid, err, &news);

	offcpu_probe_answered(tables->probe, tgid, news);
	return rc;
}

void tables_forget_process(struct tables *tables, pid_t tgid)
{
	struct set *set;

	pthread_mutex_lock(&tables->lock);
	set = set_of(tables, tgid);
	if (set) {
		offcpu_probe_forget_process(tables->probe, tgid, set->id);
		give_back(tables, set);
		*u64map_find(&tables->by_tgid, (uint64_t)tgid) = 0;
	}
	pthread_mutex_unlock(&tables->lock);
}

static const struct mapping *find_mapping(const struct mappings *mappings, uint64_t address)
{
	size_t low = 0, high = mappings->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (mappings->data[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low && address < mappings->data[low - 1].end ? &mappings->data[low - 1] : NULL;
}

uint64_t tables_place(struct tables *tables, uint32_t id, uint64_t address)
{
	const struct mapping *mapping = NULL;
	const struct set *set;
	uint64_t place = 0;

	pthread_mutex_lock(&tables->lock);
	set = find_set(tables, id);
	if (set)
		mapping = find_mapping(&set->mappings, address);
	if (mapping && mapping->object != OFFCPU_NO_OBJECT)
		place = (uint64_t)(mapping->object + 1) << PLACE_SHIFT | (address - mapping->bias);
	pthread_mutex_unlock(&tables->lock);
	return place;
}

uint32_t tables_set_of(struct tables *tables, pid_t tgid)
{
	const struct set *set;
	uint32_t id;

	pthread_mutex_lock(&tables->lock);
	set = set_of(tables, tgid);
	id = set ? set->id : 0;
	pthread_mutex_unlock(&tables->lock);
	return id;
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
