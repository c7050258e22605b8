/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/tables.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/sorted.h"
#include "offcpu/feed/found_sets.h"
#include "offcpu/feed/jit_processes.h"
#include "offcpu/feed/listing.h"
#include "offcpu/feed/mapping_sets.h"
#include "offcpu/feed/new_files.h"
#include "offcpu/feed/objects.h"
#include "offcpu/feed/runtime_processes.h"
#include "offcpu/place.h"
#include "target/rootfile.h"
#include "target/target.h"
#include "unwind/bpf_rows.h"

static_assert((int)TABLES_MAX_ROWS >= (int)BPF_ROWS_MAX, "there is room for the table of any file");

enum {
	OTHER_DESCRIPTORS = 2048,
	FIRST_MAKER = TABLES_MAX_FILES + 1, /* numbers in places: of a file + 1; from here on, of the code's maker */
};

static_assert((int)FIRST_MAKER + (int)JIT_PROCESSES_MAX <= (int)PLACE_MAX_NUMBER, "all numbers fit into a place");

struct owner {
	pid_t tgid;
	uint32_t set;
};

struct tables {
	struct offcpu_probe *probe;
	pthread_mutex_t lock; /* needed to change anything that follows; not held for long: see objects.h */
	struct objects *objects;
	struct mapping_sets *sets;
	struct found_sets *found;
	struct jit_processes *jit;
	struct runtime_processes *runtimes; /* or NULL */
	struct new_files *new_files; /* has a lock of its own */
	VEC(uint32_t) spare;         /* objects that were made before a process was read that has them, each taken once */
	VEC(struct owner) owners; /* by rising tgid */
	VEC(uint32_t) unnamed;    /* ended processes that made code, whose names are still to be read */
	struct u64map unplaced;   /* processes for whose mappings there was no room, each counted once */
	struct tables_losses losses;
};

DEFINE_CLEANUP(tables, struct tables *, tables_destroy)

static bool make_room(void *arg);

/* Each file takes a descriptor, or memory where there are too few descriptors. */
static void raise_open_files(void)
{
	const rlim_t wanted = TABLES_MAX_FILES + OTHER_DESCRIPTORS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct tables *tables_create(struct offcpu_probe *probe)
{
	const struct objects_limits limits = {.files = TABLES_MAX_FILES, .rows = TABLES_MAX_ROWS};
	_cleanup_(cleanup_tables) struct tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->probe = probe;
	pthread_mutex_init(&tables->lock, NULL);
	raise_open_files();
	tables->objects = objects_create(probe, &tables->lock, &limits, make_room, tables);
	if (tables->objects)
		tables->sets = mapping_sets_create(probe, tables->objects, TABLES_MAX_MAPPINGS, make_room, tables);
	if (tables->sets)
		tables->found = found_sets_create(probe, tables->objects);
	tables->jit = jit_processes_create();
	if (tables->objects)
		tables->new_files = new_files_create(objects_roots(tables->objects));
	return tables->found && tables->jit && tables->new_files ? steal_ptr(tables) : NULL;
}

void tables_destroy(struct tables *tables)
{
	if (!tables)
		return;
	found_sets_destroy(tables->found);
	mapping_sets_destroy(tables->sets);
	new_files_destroy(tables->new_files);
	objects_destroy(tables->objects);
	jit_processes_destroy(tables->jit);
	vec_deinit(&tables->spare);
	vec_deinit(&tables->owners);
	vec_deinit(&tables->unnamed);
	u64map_deinit(&tables->unplaced);
	pthread_mutex_destroy(&tables->lock);
	free(tables);
}

void tables_set_runtimes(struct tables *tables, struct runtime_processes *runtimes)
{
	tables->runtimes = runtimes;
}

/* The index of the process among the owners, or where it would go. */
static size_t find_owner(const struct tables *tables, pid_t tgid)
{
	return sorted_upto(tables->owners.data, tables->owners.len, .tgid, tgid - 1);
}

/* 0 when it has none. */
static uint32_t set_of(const struct tables *tables, pid_t tgid)
{
	size_t i = find_owner(tables, tgid);

	return i < tables->owners.len && tables->owners.data[i].tgid == tgid ? tables->owners.data[i].set : 0;
}

static void remove_owner(struct tables *tables, size_t i)
{
	struct owner owner = tables->owners.data[i];
	uint32_t maker = jit_processes_end(tables->jit, owner.tgid);

	tables->owners.len--;
	memmove(&tables->owners.data[i], &tables->owners.data[i + 1],
		(tables->owners.len - i) * sizeof(*tables->owners.data));
	offcpu_probe_forget_process(tables->probe, owner.tgid, owner.set);
	mapping_sets_give(tables->sets, owner.set);
	if (maker)
		vec_push(&tables->unnamed, maker);
}

static bool insert_owner(struct tables *tables, size_t i, struct owner owner)
{
	if (!vec_push(&tables->owners, owner))
		return false;
	memmove(&tables->owners.data[i + 1], &tables->owners.data[i], (tables->owners.len - 1 - i) * sizeof(owner));
	tables->owners.data[i] = owner;
	return true;
}

/* The process has this set, which was taken, from now on. False when memory is exhausted. */
static bool set_owner(struct tables *tables, pid_t tgid, uint32_t set)
{
	size_t i = find_owner(tables, tgid);
	uint32_t old = set_of(tables, tgid);

	if (!old)
		return insert_owner(tables, i, (struct owner){.tgid = tgid, .set = set});
	tables->owners.data[i].set = set;
	mapping_sets_give(tables->sets, old);
	return true;
}

/* We are not told of the end of every process that has a set: those that only woke others are not watched. */
static bool sweep(struct tables *tables)
{
	size_t before = tables->owners.len;

	for (size_t i = tables->owners.len; i-- > 0;) {
		pid_t tgid = tables->owners.data[i].tgid;

		if (kill(tgid, 0) < 0 && errno == ESRCH)
			remove_owner(tables, i);
	}
	return tables->owners.len < before;
}

static bool give_spare(struct tables *tables)
{
	if (!tables->spare.len)
		return false;
	objects_give(tables->objects, tables->spare.data[--tables->spare.len]);
	return true;
}

static bool make_room(void *arg)
{
	struct tables *tables = arg;

	return mapping_sets_drop_oldest(tables->sets) || (sweep(tables) && mapping_sets_drop_oldest(tables->sets)) ||
	       give_spare(tables) || found_sets_drop_oldest(tables->found);
}

static void lose_mappings(struct tables *tables, pid_t tgid, size_t count)
{
	bool created;

	if (u64map_put(&tables->unplaced, (uint64_t)tgid, &created) && created)
		tables->losses.mappings += count;
}

/* Tells BPF which set the process has. */
static int publish(struct tables *tables, pid_t tgid, uint32_t set, struct err *err)
{
	struct offcpu_maps maps = mapping_sets_maps(tables->sets, set);
	int rc = offcpu_probe_set_process(tables->probe, tgid, &maps);

	if (rc < 0 && sweep(tables))
		rc = offcpu_probe_set_process(tables->probe, tgid, &maps);
	if (rc == 0)
		return 0;
	lose_mappings(tables, tgid, maps.count);
	return err_set(err, -rc, "giving BPF the maps of process %d: %s", (int)tgid, strerror(-rc));
}

/* Sets the mappings of the process. *news: BPF knows more than before. */
static int set_mappings(struct tables *tables, pid_t tgid, struct listing *listing, struct err *err, bool *news)
{
	size_t count = listing->mappings.len;
	bool created;
	uint32_t set = mapping_sets_take(tables->sets, &listing->mappings, &created);

	if (!set) {
		lose_mappings(tables, tgid, count);
		return err_set(err, ENOSPC, "no room for the %zu executable mappings of process %d", count, (int)tgid);
	}
	if (created) { /* otherwise it was counted before */
		tables->losses.mappings += listing->mappings_over;
		tables->losses.objects += listing->files_over;
	}
	if (!set_owner(tables, tgid, set)) {
		mapping_sets_give(tables->sets, set);
		return err_set(err, ENOMEM, "out of memory");
	}
	if (offcpu_probe_set_of(tables->probe, tgid) == set)
		return 0;
	*news = true;
	return publish(tables, tgid, set, err);
}

static int read_mappings(struct tables *tables, struct target *target, const struct listing_options *options,
			 struct err *err, bool *news, uint64_t *new_bytes)
{
	struct listing listing;
	int rc = listing_read(target, options, err, &listing);

	*new_bytes = listing.new_bytes;
	pthread_mutex_lock(&tables->lock);
	if (!options->known_only)
		tables->losses.objects += objects_flush(tables->objects); /* before its mappings are used for a walk */
	if (rc == 0)
		rc = set_mappings(tables, target->process.pid, &listing, err, news);
	mappings_deinit(&listing.mappings, tables->objects);
	pthread_mutex_unlock(&tables->lock);
	return rc;
}

/* The process may have executed another program since its map was read: then BPF asks again. */
static void forget_other_program(struct tables *tables, const struct target *target, bool *news)
{
	pid_t tgid = target->process.pid;
	uint32_t set;

	if (target_check(target, NULL) == 0)
		return;
	pthread_mutex_lock(&tables->lock);
	set = set_of(tables, tgid);
	if (set)
		offcpu_probe_forget_process(tables->probe, tgid, set);
	*news |= set != 0;
	pthread_mutex_unlock(&tables->lock);
}

static int read_process(struct tables *tables, pid_t tgid, bool asked, bool known_only, struct err *err,
			uint64_t *new_bytes)
{
	const struct listing_options options = {
		.objects = tables->objects,
		.jit = tables->jit,
		.lock = &tables->lock,
		.known_only = known_only,
		.new_files = tables->new_files,
	};
	_cleanup_(cleanup_target) struct target *target = NULL;
	bool news = false;
	int rc = target_open(tgid, err, &target);

	*new_bytes = 0;
	if (rc == 0)
		rc = read_mappings(tables, target, &options, err, &news, new_bytes);
	if (rc == 0)
		forget_other_program(tables, target, &news);
	if (rc == 0 && tables->runtimes)
		runtime_processes_note(tables->runtimes, target);
	if (!(known_only && rc == -EAGAIN) && (asked || news))
		offcpu_probe_answered(tables->probe, tgid, rc == 0 && news);
	return rc;
}

int tables_read_process(struct tables *tables, pid_t tgid, struct err *err)
{
	uint64_t none;

	return read_process(tables, tgid, true, false, err, &none);
}

void tables_refuse_process(struct tables *tables, pid_t tgid)
{
	offcpu_probe_answered(tables->probe, tgid, false);
}

int tables_reread_process(struct tables *tables, pid_t tgid, struct err *err)
{
	uint64_t none;

	return read_process(tables, tgid, false, false, err, &none);
}

int tables_read_known(struct tables *tables, pid_t tgid, bool asked, struct err *err, uint64_t *new_bytes)
{
	return read_process(tables, tgid, asked, true, err, new_bytes);
}

/* NULL: it is no object, or cannot be read. */
static struct module *open_module(struct new_file *file)
{
	struct module *module = NULL;
	struct image *image = NULL;
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || rootfile_to_image(fd, &file->st, NULL, &image) < 0)
		return NULL;
	return module_create(image, file->path, NULL, &module) == 0 ? module : NULL;
}

static void make_new(struct tables *tables, struct new_file *file)
{
	struct open_file open = {.offset = file->offset, .root = file->root};
	struct module *module = open_module(file);
	uint64_t vaddr = file->offset;
	enum objects_fit fit;
	uint32_t number;

	if (!module)
		return;
	image_offset_to_vaddr(module->image, file->offset, &vaddr);
	pthread_mutex_lock(&tables->lock);
	if (vec_reserve(&tables->spare, tables->spare.len + 1)) {
		open.fd = steal_fd(&file->fd);
		number = objects_take_open(tables->objects, &open, module, vaddr, &fit);
		if (number != OFFCPU_NO_OBJECT)
			vec_push(&tables->spare, number);
	}
	pthread_mutex_unlock(&tables->lock);
	module_destroy(module);
}

bool tables_make_one(struct tables *tables)
{
	struct new_file file;

	if (!new_files_take(tables->new_files, &file))
		return false;
	make_new(tables, &file);
	new_files_drop(tables->new_files, &file);
	return true;
}

void tables_open_rest(struct tables *tables)
{
	pthread_mutex_lock(&tables->lock);
	objects_end_tables(tables->objects);
	pthread_mutex_unlock(&tables->lock);
	while (tables_make_one(tables))
		;
}

uint32_t tables_find_file(struct tables *tables, const struct offcpu_file *file)
{
	uint32_t number;

	return objects_find_file(tables->objects, file, &number) ? number + 1 : 0;
}

struct module *tables_open_file(struct tables *tables, uint32_t number)
{
	objects_keep(tables->objects, number - 1);
	return objects_module(tables->objects, number - 1);
}

void tables_give(struct tables *tables)
{
	pthread_mutex_lock(&tables->lock);
	tables->losses.objects += objects_flush(tables->objects);
	pthread_mutex_unlock(&tables->lock);
}

uint64_t tables_made(struct tables *tables)
{
	uint64_t made;

	pthread_mutex_lock(&tables->lock);
	made = objects_made(tables->objects);
	pthread_mutex_unlock(&tables->lock);
	return made;
}

bool tables_forget_process(struct tables *tables, pid_t tgid)
{
	bool unnamed;

	pthread_mutex_lock(&tables->lock);
	if (set_of(tables, tgid))
		remove_owner(tables, find_owner(tables, tgid));
	unnamed = tables->unnamed.len > 0;
	pthread_mutex_unlock(&tables->lock);
	return unnamed;
}

/* 0 when there is none. */
static uint32_t take_unnamed(struct tables *tables)
{
	uint32_t maker;

	pthread_mutex_lock(&tables->lock);
	maker = tables->unnamed.len ? tables->unnamed.data[--tables->unnamed.len] : 0;
	pthread_mutex_unlock(&tables->lock);
	return maker;
}

void tables_read_names(struct tables *tables)
{
	uint32_t maker;

	while ((maker = take_unnamed(tables)))
		jit_processes_read_names(tables->jit, maker);
}

void tables_add_found(struct tables *tables, const void *record, size_t len)
{
	pthread_mutex_lock(&tables->lock);
	found_sets_add(tables->found, record, len);
	pthread_mutex_unlock(&tables->lock);
}

static bool find_mapping(struct tables *tables, uint32_t set, uint64_t address, struct mapping *out)
{
	return set & OFFCPU_FOUND_SET ? found_sets_find(tables->found, set, address, out)
				      : mapping_sets_find(tables->sets, set, address, out);
}

uint64_t tables_place(struct tables *tables, uint32_t set, uint64_t address)
{
	struct mapping mapping;
	uint64_t place;

	if (!find_mapping(tables, set, address, &mapping))
		return 0;
	if (mapping.object != OFFCPU_NO_OBJECT)
		return place_make(mapping.object + 1, address - mapping.bias);
	place = mapping.maker ? place_make(FIRST_MAKER - 1 + mapping.maker, address - mapping.bias) : 0;
	if (place)
		jit_processes_keep(tables->jit, mapping.maker);
	return place;
}

struct set_of_tables {
	struct tables *tables;
	uint32_t set;
};

static uint64_t find_place(void *ctx, uint64_t address)
{
	const struct set_of_tables *from = ctx;

	return tables_place(from->tables, from->set, address);
}

uint64_t tables_place_frame(struct tables *tables, uint32_t set, const struct raw_frame *frame)
{
	struct set_of_tables from = {.tables = tables, .set = set};

	return place_of_frame(frame, find_place, &from);
}

uint32_t tables_set_of(const struct tables *tables, pid_t tgid)
{
	return offcpu_probe_set_of(tables->probe, tgid);
}

struct module *tables_module(void *ctx, uint64_t place, uint64_t *vaddr)
{
	struct tables *tables = ctx;
	uint32_t number = place_split(place, vaddr);

	return number && number < FIRST_MAKER ? objects_module(tables->objects, number - 1) : NULL;
}

bool tables_find_made(void *ctx, uint64_t place, uint64_t *address, struct calls *out)
{
	struct tables *tables = ctx;
	uint32_t number = place_split(place, address);

	return number >= FIRST_MAKER && jit_processes_find(tables->jit, number - FIRST_MAKER + 1, *address, out);
}

void tables_notes(const struct tables *tables, tables_note_fn fn, void *arg)
{
	jit_processes_notes(tables->jit, fn, arg);
}

struct tables_losses tables_losses(const struct tables *tables)
{
	struct tables_losses losses = tables->losses;

	losses.jit_processes = jit_processes_over_limit(tables->jit);
	return losses;
}

bool tables_prepare_names(struct tables *tables, struct watch_targets *out)
{
	out->roots = objects_roots(tables->objects);
	return jit_processes_look(tables->jit, out);
}

void tables_keep_names(struct tables *tables)
{
	objects_keep_names(tables->objects);
}
