/* SPDX-License-Identifier: MIT */
#include "offcpu/feed/listing.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "target/target.h"

/* The file of a mapping that need not be opened. */
struct known_file {
	uint64_t start;
	uint64_t vaddr;
	uint32_t object; /* taken from the objects */
};

struct reading {
	const struct target *target;
	const struct listing_options *options;
	struct objects *objects;
	struct listing *listing;
	VEC(struct known_file) known_files; /* by rising address */
	size_t next_known;       /* the first one not listed yet */
	struct u64map modules;   /* to their objects, so that none is looked up twice */
	bool asked_maker;
	uint32_t maker; /* of the process's code that is in no file */
};

static bool take_known(struct reading *r, const struct map_entry *entry, uint64_t key, struct known_file *known)
{
	enum objects_fit fit;
	bool ok;

	pthread_mutex_lock(r->options->lock);
	ok = objects_take_known(r->objects, key, entry, &known->object, &known->vaddr, &fit);
	pthread_mutex_unlock(r->options->lock);
	if (ok)
		r->listing->files_over += fit != OBJECTS_FIT;
	return ok;
}

/* The file is new, although only known ones are wanted. */
static void note_new(struct reading *r, const struct map_entry *entry)
{
	r->listing->new_bytes += entry->end - entry->start;
}

static bool is_known(void *arg, const struct map_entry *entry, uint64_t identity)
{
	struct reading *r = arg;
	struct known_file known = {.start = entry->start};

	if (vec_reserve(&r->known_files, r->known_files.len + 1) && take_known(r, entry, identity, &known))
		return vec_push(&r->known_files, known);
	if (r->options->known_only)
		note_new(r, entry);
	if (r->options->known_only && identity && r->options->new_files)
		new_files_add(r->options->new_files, r->target, entry, identity);
	return r->options->known_only; /* then it is not opened */
}

static const struct known_file *next_known(struct reading *r, const struct map_entry *entry)
{
	if (r->next_known == r->known_files.len || r->known_files.data[r->next_known].start != entry->start)
		return NULL;
	return &r->known_files.data[r->next_known++];
}

static uint32_t take_object(struct reading *r, const struct target *target, const struct map_entry *entry,
			    struct module *module, uint64_t vaddr)
{
	struct known_file known = {.object = OFFCPU_NO_OBJECT};
	enum objects_fit fit;
	uint64_t key;

	if (r->options->known_only) {
		key = objects_key(module);
		if (key && take_known(r, entry, key, &known))
			return known.object;
		if (key) /* also if another thread is just making its table */
			note_new(r, entry);
		return OFFCPU_NO_OBJECT;
	}
	pthread_mutex_lock(r->options->lock);
	known.object = objects_take(r->objects, target->modules, entry, module, vaddr, &fit);
	pthread_mutex_unlock(r->options->lock);
	r->listing->files_over += fit != OBJECTS_FIT;
	return known.object;
}

static void take_again(struct reading *r, uint32_t object)
{
	pthread_mutex_lock(r->options->lock);
	objects_take_again(r->objects, object);
	pthread_mutex_unlock(r->options->lock);
}

/* Takes the object of a mapping. False when it has no readable file, or there is no room. */
static bool find_object(struct reading *r, const struct target *target, const struct map_entry *entry,
			uint32_t *object, uint64_t *vaddr)
{
	const struct known_file *known = next_known(r, entry);
	struct module *module;
	uint64_t *slot;
	bool created;

	if (known) {
		*object = known->object;
		*vaddr = known->vaddr;
		return true;
	}
	module = modules_find(target->modules, entry->start, vaddr);
	slot = module ? u64map_put(&r->modules, (uintptr_t)module, &created) : NULL;
	if (!slot)
		return false;
	if (created)
		*slot = take_object(r, target, entry, module, *vaddr);
	else if (*slot != OFFCPU_NO_OBJECT)
		take_again(r, (uint32_t)*slot);
	*object = (uint32_t)*slot;
	return *object != OFFCPU_NO_OBJECT;
}

static bool is_code(const struct map_entry *entry)
{
	return entry->perms & MAP_PERM_EXEC;
}

/* How much room there is for mappings without a file: libraries come first, as no stack is whole without them. */
static size_t count_loose(const struct target *target)
{
	size_t of_files = 0;

	for (size_t i = 0; i < target->snap->maps.len; i++)
		of_files += is_code(&target->snap->maps.data[i]) && target->snap->maps.data[i].inode;
	return of_files < LISTING_MAX ? LISTING_MAX - of_files : 0;
}

/* Code that was, or may have been, made at run time: anything that the kernel did not map itself. */
static bool is_made(const struct map_entry *entry)
{
	return entry->path[0] != '[' || strncmp(entry->path, "[anon:", 6) == 0 || strcmp(entry->path, "[heap]") == 0 ||
	       strcmp(entry->path, "[stack]") == 0;
}

/* Asked once for all mappings, even if the answer is none. */
static uint32_t find_maker(struct reading *r)
{
	if (!r->asked_maker)
		r->maker = jit_processes_add(r->options->jit, r->target->process.pid, r->target->generation);
	r->asked_maker = true;
	return r->maker;
}

static bool list(struct reading *r, const struct target *target)
{
	struct listing *out = r->listing;
	size_t loose = count_loose(target);

	for (size_t i = 0; i < target->snap->maps.len; i++) {
		const struct map_entry *e = &target->snap->maps.data[i];
		struct mapping mapping = {.start = e->start, .end = e->end, .object = OFFCPU_NO_OBJECT};
		uint64_t vaddr;

		if (!is_code(e))
			continue;
		if (out->mappings.len >= LISTING_MAX || (!e->inode && !loose)) {
			out->mappings_over++;
			continue;
		}
		loose -= !e->inode;
		if (!vec_reserve(&out->mappings, out->mappings.len + 1))
			return false;
		if (find_object(r, target, e, &mapping.object, &vaddr))
			mapping.bias = e->start - vaddr;
		else if (is_made(e))
			mapping.maker = find_maker(r);
		vec_push(&out->mappings, mapping);
	}
	return true;
}

int listing_read(struct target *target, const struct listing_options *options, struct err *err, struct listing *out)
{
	struct reading r = {.target = target, .options = options, .objects = options->objects, .listing = out};
	const struct modules_options files = {.is_known = is_known, .arg = &r};
	int rc;

	*out = (struct listing){0};
	rc = target_read_map(target, err);
	if (rc == 0)
		rc = target_open_files(target, &files, err);
	if (rc == 0 && !out->new_bytes && !list(&r, target))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0 && out->new_bytes)
		rc = err_set(err, EAGAIN, "it has files that are not known yet");
	pthread_mutex_lock(options->lock);
	for (size_t i = r.next_known; i < r.known_files.len; i++)
		objects_give(r.objects, r.known_files.data[i].object);
	pthread_mutex_unlock(options->lock);
	vec_deinit(&r.known_files);
	u64map_deinit(&r.modules);
	return rc;
}
