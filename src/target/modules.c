/* SPDX-License-Identifier: MIT */
#include "target/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "target/jit_images.h"
#include "target/mapped_file.h"
#include "target/memimage.h"
#include "target/rootfile.h"
#include "target/target.h"

enum {
	MAX_OPEN_FILES = 1024, /* no real program maps more */
	MAX_COPIES = 32,
};

/* A module and what it is a module of. */
struct loaded_module {
	struct module module;
	const struct map_entry *entry; /* the first mapping */
	struct mem_copy copy;          /* the memory that the image is in; len is 0 for a file */
	uint64_t copy_vaddr;           /* of the copy's first byte, in the image's own terms */
	bool is_made;                  /* there is no file on disk and no object in it: it holds code made at run time */
};

struct modules {
	struct target *target;
	struct snapshot *snap; /* of the target */
	struct modules_options options;
	size_t open_files;
	size_t max_open_files;
	VEC(struct loaded_module *) loaded;
	struct loaded_module **by_map; /* for each entry of snap->maps; NULL when no module is mapped there */
	module_lender lend;            /* instead of that */
	void *lender;
	struct jit_images *jit;
	struct notes notes;
};

DEFINE_CLEANUP(modules, struct modules *, modules_destroy)
DEFINE_CLEANUP(image, struct image *, image_destroy)

static bool same_file(const struct map_entry *a, const struct map_entry *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       (a->path == b->path || strcmp(a->path, b->path) == 0);
}

static bool starts_in(const struct map_entry *entry, const struct mem_copy *copy)
{
	return entry->start >= copy->start && entry->start - copy->start < copy->len;
}

static const struct mem_copy *find_copy(const struct snapshot *snap, const struct map_entry *entry)
{
	for (size_t i = 0; i < snap->images.len; i++)
		if (starts_in(entry, &snap->images.data[i]))
			return &snap->images.data[i];
	return NULL;
}

/* The address that the image gives to the first byte of its copy in memory. */
static uint64_t first_vaddr(const struct image *image)
{
	const Elf64_Phdr *phdr = image_segment_of(image, PT_LOAD);

	return phdr ? phdr->p_vaddr - phdr->p_offset : 0;
}

static int open_copy(struct loaded_module *loaded, const struct mem_copy *copy, struct err *err)
{
	int ret = image_open_memory(copy->data, copy->len, err, &loaded->module.image);

	if (ret < 0)
		return ret;
	loaded->copy = *copy;
	loaded->copy_vaddr = first_vaddr(loaded->module.image);
	return 0;
}

/* The mappings [*first, *last] of the loaded object that `entry` is part of: from file offset 0 to the next such. */
static bool find_extent(const struct maps *maps, const struct map_entry *entry, size_t *first, size_t *last)
{
	size_t at = (size_t)(entry - maps->data);

	for (*first = at; maps->data[*first].offset != 0 || !same_file(&maps->data[*first], entry); (*first)--)
		if (*first == 0)
			return false;
	*last = at;
	for (size_t i = *first + 1; i < maps->len; i++) {
		if (!same_file(&maps->data[i], entry))
			continue;
		if (maps->data[i].offset == 0)
			break;
		if (i > *last)
			*last = i;
	}
	return true;
}

/* Whether a file that was found at the path of a deleted one has another build-id than what is in memory. */
static bool is_another_build(struct modules *m, const struct map_entry *entry, const struct image *image)
{
	_cleanup_(cleanup_image) struct image *loaded = NULL;
	const char *found = image_build_id(image), *id;
	struct mem_copy copy;
	size_t first, last;

	if (!find_extent(&m->snap->maps, entry, &first, &last) ||
	    memimage_copy(m->snap, &m->target->memory, first, last, NULL, &copy) < 0 ||
	    image_open_memory(copy.data, copy.len, NULL, &loaded) < 0)
		return false;
	id = image_build_id(loaded);
	return id && (!found || strcmp(id, found) != 0);
}

static int open_live_image(struct modules *m, const struct map_entry *entry, struct err *err, struct image **out)
{
	struct stat st;
	int fd = mapped_file_open(m->target, entry, m->options.ignore_deleted, err, &st);
	int ret = fd < 0 ? fd : rootfile_to_image(fd, &st, err, out);

	if (ret < 0 || st.st_ino == entry->inode || !entry->deleted || !is_another_build(m, entry, *out))
		return ret;
	image_destroy(steal_ptr(*out));
	return err_set(err, ESTALE, "the file is deleted, and what is at its path now has another build-id");
}

static int open_file(struct modules *m, const struct map_entry *entry, struct err *err, struct image **out)
{
	int ret;

	if (m->open_files >= m->max_open_files)
		return err_set(err, EMFILE, "more than %zu files are mapped: this one is not read", m->max_open_files);
	if (m->snap->replayed)
		ret = mapped_file_open_recorded(entry, err, out);
	else
		ret = open_live_image(m, entry, err, out);
	if (ret == 0)
		m->open_files++;
	return ret;
}

/* Copies a file that exists only in memory into the snapshot, so that a saved one has it too. */
static int open_from_memory(struct modules *m, struct loaded_module *loaded)
{
	struct mem_copy copy;
	size_t first, last;
	int ret;

	if (!target_is_live(m->target) || m->snap->images.len >= MAX_COPIES ||
	    !find_extent(&m->snap->maps, loaded->entry, &first, &last))
		return -ENOENT;
	ret = memimage_copy(m->snap, &m->target->memory, first, last, NULL, &copy);
	if (ret < 0)
		return ret;
	if (!vec_push(&m->snap->images, copy))
		return -ENOMEM;
	return open_copy(loaded, &copy, NULL);
}

/* Compilers write their code through one mapping of such a file, and run it in another. */
static bool is_in_memory(const struct map_entry *entry)
{
	static const char *const starts[] = {"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(entry->path, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

static void open_module(struct modules *m, struct loaded_module *loaded)
{
	const struct map_entry *entry = loaded->entry;
	const struct mem_copy *copy = find_copy(m->snap, entry);
	struct module_info *info = &loaded->module.info;
	struct err err = {0};
	int ret;

	if (copy)
		ret = open_copy(loaded, copy, &err);
	else if (entry->inode == 0)
		ret = err_set(&err, ENOENT, "it was not captured");
	else
		ret = open_file(m, entry, &err, &loaded->module.image);
	if (ret < 0 && entry->deleted && open_from_memory(m, loaded) == 0) {
		ret = 0;
		info->help = arena_intern(m->snap->arena, err.msg); /* the file would have more than what of it is in memory */
	}
	loaded->is_made = (ret == -ENOEXEC || (ret < 0 && m->snap->replayed)) && is_in_memory(entry);
	if (ret < 0)
		info->problem = arena_intern(m->snap->arena, err.msg);
	else
		info->build_id = arena_intern(m->snap->arena, image_build_id(loaded->module.image));
	if (ret == 0 && image_has_changed(loaded->module.image))
		info->problem = "the file was changed while it was read";
	if (!info->build_id)
		info->build_id = entry->build_id;
}

static struct loaded_module *find_loaded(const struct modules *m, const struct map_entry *entry)
{
	for (size_t i = m->loaded.len; i-- > 0;) {
		struct loaded_module *loaded = m->loaded.data[i];

		if (same_file(loaded->entry, entry) && (!loaded->copy.len || starts_in(entry, &loaded->copy)))
			return loaded;
	}
	return NULL;
}

static struct loaded_module *add_module(struct modules *m, const struct map_entry *entry)
{
	struct loaded_module *loaded = calloc(1, sizeof(*loaded));

	if (!loaded || !vec_push(&m->loaded, loaded)) {
		free(loaded);
		return NULL;
	}
	loaded->entry = entry;
	loaded->module.info.path = entry->path;
	loaded->module.root_fd = m->target->root_fd;
	open_module(m, loaded);
	return loaded;
}

/* Mappings that are to have a module: files, and what capture copied because it is in memory only. */
static bool is_module(const struct modules *m, const struct map_entry *entry)
{
	return entry->inode != 0 || strcmp(entry->path, "[vdso]") == 0 || find_copy(m->snap, entry);
}

/* What the caller has already is not opened: its mappings have no module. */
static bool is_known(const struct modules *m, const struct map_entry *entry)
{
	return m->options.is_known && entry->inode &&
	       m->options.is_known(m->options.arg, entry, mapped_file_identity(m->target, entry));
}

/* Code opens files; the other mappings of such a file then belong to the same module. */
static int assign_modules(struct modules *m, struct err *err)
{
	struct maps *maps = &m->snap->maps;

	for (int code = 1; code >= 0; code--) {
		for (size_t i = 0; i < maps->len; i++) {
			struct map_entry *entry = &maps->data[i];

			if (m->by_map[i] || (code && !(entry->perms & MAP_PERM_EXEC)) || !is_module(m, entry))
				continue;
			m->by_map[i] = find_loaded(m, entry);
			if (!m->by_map[i] && code && !is_known(m, entry)) {
				m->by_map[i] = add_module(m, entry);
				if (!m->by_map[i])
					return err_set(err, ENOMEM, "out of memory");
			}
			if (m->by_map[i])
				entry->build_id = m->by_map[i]->module.info.build_id;
		}
	}
	return 0;
}

/* Code outside of all files, such as a JIT compiler makes. */
static bool has_loose_code(const struct modules *m)
{
	for (size_t i = 0; i < m->snap->maps.len; i++) {
		const struct map_entry *entry = &m->snap->maps.data[i];

		if ((entry->perms & MAP_PERM_EXEC) && (!m->by_map[i] || !m->by_map[i]->module.image) &&
		    strcmp(entry->path, "[vsyscall]") != 0)
			return true;
	}
	return false;
}

/* Each mapping of code is asked, since a library may be loaded twice; the lists of both are read. */
static int copy_jit_images(struct modules *m, struct err *err)
{
	struct u64map seen = {0};
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < m->snap->maps.len; i++) {
		const struct map_entry *entry = &m->snap->maps.data[i];
		struct module *module = m->by_map[i] ? &m->by_map[i]->module : NULL;
		uint64_t descriptor, vaddr;
		bool created;

		if (!(entry->perms & MAP_PERM_EXEC) || !module || !module->image ||
		    !jit_images_find_descriptor(module->image, &descriptor))
			continue;
		modules_find(m, entry->start, &vaddr);
		descriptor += entry->start - vaddr;
		if (u64map_put(&seen, descriptor, &created) && created)
			ret = jit_images_copy(m->target, m->snap, descriptor, err);
	}
	u64map_deinit(&seen);
	return ret;
}

/* Half of what we may open: the rest is for debug files and for everything else. */
static size_t open_files_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > MAX_OPEN_FILES)
		return MAX_OPEN_FILES;
	return limit.rlim_cur / 2;
}

int modules_create(struct target *target, const struct modules_options *options, struct err *err, struct modules **out)
{
	_cleanup_(cleanup_modules) struct modules *m = calloc(1, sizeof(*m));
	struct snapshot *snap = target->snap;
	int ret;

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->target = target;
	m->snap = snap;
	if (options)
		m->options = *options;
	m->max_open_files = open_files_limit();
	m->by_map = calloc(snap->maps.len ? snap->maps.len : 1, sizeof(*m->by_map));
	if (!m->by_map)
		return err_set(err, ENOMEM, "out of memory");
	ret = assign_modules(m, err);
	if (ret == 0 && target_is_live(target) && !snap->jit_images.len && has_loose_code(m))
		ret = copy_jit_images(m, err);
	if (ret < 0)
		return ret;
	m->jit = jit_images_create(snap, target->root_fd, &m->notes);
	if (!m->jit)
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(m);
	return 0;
}

struct modules *modules_lend(struct snapshot *snap, module_lender lend, void *ctx)
{
	struct modules *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->snap = snap;
	m->lend = lend;
	m->lender = ctx;
	return m;
}

void module_keep_symbols(struct module *module)
{
	if (module->symbol_keep)
		module->symbol_keep(module->symbol);
}

void modules_keep_symbols(struct modules *m)
{
	for (size_t i = 0; i < m->loaded.len; i++)
		module_keep_symbols(&m->loaded.data[i]->module);
}

static void close_module(struct module *module)
{
	if (module->symbol_free)
		module->symbol_free(module->symbol);
	if (module->unwind_free)
		module->unwind_free(module->unwind);
	image_destroy(module->image);
}

static void destroy_loaded(struct loaded_module *loaded)
{
	close_module(&loaded->module);
	free(loaded);
}

int module_create(struct image *image, const char *path, struct err *err, struct module **out)
{
	struct module *module = calloc(1, sizeof(*module));
	char *copy = strdup(path);

	if (!module || !copy) {
		free(module);
		free(copy);
		image_destroy(image);
		return err_set(err, ENOMEM, "out of memory");
	}
	*module = (struct module){
		.info = {.path = copy, .build_id = image_build_id(image)},
		.image = image,
		.root_fd = -1,
	};
	*out = module;
	return 0;
}

void module_destroy(struct module *module)
{
	if (!module)
		return;
	close_module(module);
	free((char *)module->info.path);
	free(module);
}

void modules_destroy(struct modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->loaded.len; i++)
		destroy_loaded(m->loaded.data[i]);
	vec_deinit(&m->loaded);
	jit_images_destroy(m->jit);
	notes_deinit(&m->notes);
	free(m->by_map);
	free(m);
}

static struct module *find_lent(const struct modules *m, const struct map_entry *entry, uint64_t address, uint64_t *vaddr)
{
	struct module *module = entry ? m->lend(m->lender, (size_t)(entry - m->snap->maps.data)) : NULL;
	uint64_t offset = entry ? address - entry->start + entry->offset : 0;

	*vaddr = offset;
	if (module && module->image)
		image_offset_to_vaddr(module->image, offset, vaddr);
	return module;
}

struct module *modules_find(struct modules *m, uint64_t address, uint64_t *vaddr)
{
	const struct map_entry *entry = maps_find(&m->snap->maps, address);
	struct loaded_module *loaded;
	struct module *jit;
	uint64_t offset;

	if (m->lend)
		return find_lent(m, entry, address, vaddr);
	loaded = entry ? m->by_map[entry - m->snap->maps.data] : NULL;
	jit = (loaded && loaded->module.image) || !m->jit ? NULL : jit_images_find(m->jit, address);
	if (jit) {
		*vaddr = address;
		return jit;
	}
	if (!loaded || loaded->is_made)
		return NULL;
	offset = address - entry->start + entry->offset;
	*vaddr = offset;
	if (loaded->copy.len)
		*vaddr = address - loaded->copy.start + loaded->copy_vaddr;
	else if (loaded->module.image)
		image_offset_to_vaddr(loaded->module.image, offset, vaddr);
	return &loaded->module;
}

struct module *modules_next(struct modules *modules, size_t *at, const struct map_entry **entry, uint64_t *bias)
{
	const struct maps *maps = &modules->snap->maps;
	const struct module *last = NULL;
	uint64_t vaddr;

	if (*at)
		last = modules_find(modules, maps->data[*at - 1].start, &vaddr);
	for (; *at < maps->len; ++*at) {
		struct module *module;

		*entry = &maps->data[*at];
		if (!((*entry)->perms & MAP_PERM_EXEC))
			continue;
		module = modules_find(modules, (*entry)->start, &vaddr);
		if (!module || module == last || !module->image || module->jit)
			continue;
		*bias = (*entry)->start - vaddr;
		++*at;
		return module;
	}
	return NULL;
}

struct image *module_take_image(struct module *module)
{
	return steal_ptr(module->image);
}

struct target *modules_target(const struct modules *m)
{
	return m->target;
}

struct notes *modules_notes(struct modules *m)
{
	return &m->notes;
}
