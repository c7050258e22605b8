/* SPDX-License-Identifier: MIT */
#include "target/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "target/jit_images.h"
#include "target/memimage.h"
#include "target/rootfile.h"

enum {
	MAX_OPEN_FILES = 1024, /* each costs a descriptor; no real program maps more */
	MAX_COPIES = 32,
};

/* A module and what it is a module of. */
struct loaded {
	struct module module;
	const struct map_entry *entry; /* the first mapping */
	struct mem_copy copy;          /* the memory that the image is in; len is 0 for a file */
	uint64_t copy_vaddr;           /* of the copy's first byte, in the image's own terms */
};

struct modules {
	struct snapshot *snap;
	bool ignore_deleted;
	int proc_fd; /* /proc/PID, or -1 */
	int root_fd; /* the target's root, or -1 */
	size_t open_files;
	size_t max_open_files;
	VEC(struct loaded *) loaded;
	struct loaded **by_map; /* for each entry of snap->maps; NULL when no module is mapped there */
	struct jit_images *jit;
};

DEFINE_CLEANUP(modules, struct modules *, modules_destroy)
DEFINE_CLEANUP(image, struct image *, image_destroy)

static bool same_file(const struct map_entry *a, const struct map_entry *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       (a->path == b->path || strcmp(a->path, b->path) == 0);
}

enum identity {
	SAME_INODE, /* the device number may differ */
	SAME_INODE_AND_DEV,
	ANY_FILE,
};

/*
 * Is this the file that the target has mapped? btrfs and overlayfs give other device numbers in maps than in stat,
 * so below the target's own root, where the path is the one that was mapped, an equal inode is enough.
 */
static bool is_identical(int fd, const struct map_entry *entry, enum identity identity)
{
	struct stat st;

	if (identity == ANY_FILE)
		return true;
	if (fstat(fd, &st) < 0 || st.st_ino != entry->inode)
		return false;
	return identity == SAME_INODE || (major(st.st_dev) == entry->dev_major && minor(st.st_dev) == entry->dev_minor);
}

/* Closes the file and gives -ESTALE when it is another one. */
static int check_identity(int fd, const struct map_entry *entry, enum identity identity)
{
	if (fd >= 0 && !is_identical(fd, entry, identity)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* One of the kernel's links below /proc/PID that lead to the file itself, wherever and whether it has a name. */
static int open_link(const struct modules *m, const char *link, const struct map_entry *entry)
{
	_cleanup_close_ int path_fd = openat(m->proc_fd, link, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	return check_identity(rootfile_reopen(path_fd), entry, SAME_INODE);
}

static int open_path(const struct modules *m, const struct map_entry *entry)
{
	int fd = m->root_fd >= 0 ? check_identity(rootfile_open(m->root_fd, entry->path), entry, SAME_INODE) : -ENOENT;
	int own;

	if (fd >= 0)
		return fd;
	/* /proc shows paths relative to the reader's root: for a target in a chroot that is ours. */
	own = check_identity(rootfile_open(-1, entry->path), entry, SAME_INODE_AND_DEV);
	return own >= 0 ? own : fd;
}

static int explain_open(const struct map_entry *entry, int code, struct err *err)
{
	if (entry->deleted)
		return err_set(
			err, code,
			"the file is deleted; opening what is left of it through /proc/PID/map_files needs root, "
			"CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; --ignore-deleted reads what is at its path now");
	if (code == ESTALE)
		return err_set(err, code, "the file at this path is not the one that is mapped");
	if (code == EINVAL)
		return err_set(err, code, "not a regular file");
	return err_set(err, code, "cannot be opened: %s", strerror(code));
}

/* From the surest way to the least: each finds the mapped file, or none. */
static int open_live(const struct modules *m, const struct map_entry *entry, struct err *err)
{
	char link[64];
	int fd, code;

	snprintf(link, sizeof(link), "map_files/%llx-%llx", (unsigned long long)entry->start,
		 (unsigned long long)entry->end);
	fd = open_link(m, link, entry);
	if (fd >= 0)
		return fd;
	fd = open_path(m, entry);
	code = -fd;
	if (fd < 0)
		fd = open_link(m, "exe", entry);
	if (fd < 0 && entry->deleted && m->ignore_deleted)
		fd = check_identity(rootfile_open(m->root_fd, entry->path), entry, ANY_FILE);
	return fd >= 0 ? fd : explain_open(entry, code, err);
}

static int open_live_image(struct modules *m, const struct map_entry *entry, struct err *err, struct image **out)
{
	int fd = open_live(m, entry, err);

	return fd < 0 ? fd : image_open_fd(fd, err, out);
}

/* A file of the machine that replays is the recorded one when its build-id says so, else when its inode does. */
static int open_recorded_path(const char *path, const struct map_entry *entry, struct err *err, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	int fd = check_identity(rootfile_open(-1, path), entry, entry->build_id ? ANY_FILE : SAME_INODE_AND_DEV);
	const char *found;
	int ret;

	if (fd == -ESTALE)
		return err_set(err, ESTALE, "the recorded file has no build-id, and the one at this path is another");
	if (fd < 0)
		return err_set(err, -fd, "cannot be opened: %s", strerror(-fd));
	ret = image_open_fd(fd, err, &image);
	if (ret < 0)
		return ret;
	found = image_build_id(image);
	if (entry->build_id && (!found || strcmp(found, entry->build_id) != 0))
		return err_set(err, ESTALE, "the file's build-id differs: %s was recorded, here it is %s",
			       entry->build_id, found ? found : "missing");
	*out = steal_ptr(image);
	return 0;
}

static int open_replayed_image(const struct map_entry *entry, struct err *err, struct image **out)
{
	static const char *const places[] = {"/usr/lib/.build-id/%.2s/%s", "/usr/lib/debug/.build-id/%.2s/%s"};
	const char *id = entry->build_id;
	int ret = open_recorded_path(entry->path, entry, err, out);
	char path[256];

	for (size_t i = 0; ret < 0 && id && strlen(id) > 2 && i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(path, sizeof(path), places[i], id, id + 2);

		/* A saved build-id is foreign text: only what can be one becomes a path. */
		if (strspn(id, "0123456789abcdef") != strlen(id) || len < 0 || (size_t)len >= sizeof(path))
			break;
		if (open_recorded_path(path, entry, NULL, out) == 0)
			ret = 0;
	}
	return ret;
}

static int open_file(struct modules *m, const struct map_entry *entry, struct err *err, struct image **out)
{
	int ret;

	if (m->open_files >= m->max_open_files)
		return err_set(err, EMFILE, "more than %zu files are mapped: this one is not read", m->max_open_files);
	if (m->snap->replayed)
		ret = open_replayed_image(entry, err, out);
	else if (m->proc_fd < 0)
		ret = err_set(err, ESRCH, "the process is gone");
	else
		ret = open_live_image(m, entry, err, out);
	if (ret == 0)
		m->open_files++;
	return ret;
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

static int open_copy(struct loaded *loaded, const struct mem_copy *copy, struct err *err)
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

/* Copies a file that exists only in memory into the snapshot, so that a saved one has it too. */
static int open_from_memory(struct modules *m, struct loaded *loaded)
{
	_cleanup_close_ int mem_fd = -1;
	struct mem_copy copy;
	size_t first, last;
	int ret;

	if (m->proc_fd < 0 || m->snap->images.len >= MAX_COPIES ||
	    !find_extent(&m->snap->maps, loaded->entry, &first, &last))
		return -ENOENT;
	mem_fd = openat(m->proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	if (mem_fd < 0)
		return -errno;
	ret = memimage_copy(m->snap, mem_fd, first, last, NULL, &copy);
	if (ret < 0)
		return ret;
	if (!vec_push(&m->snap->images, copy))
		return -ENOMEM;
	return open_copy(loaded, &copy, NULL);
}

static void open_module(struct modules *m, struct loaded *loaded)
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
	if (ret < 0 && entry->deleted && open_from_memory(m, loaded) == 0)
		ret = 0;
	if (ret < 0)
		info->problem = arena_intern(m->snap->arena, err.msg);
	else
		info->build_id = arena_intern(m->snap->arena, image_build_id(loaded->module.image));
	if (ret == 0 && image_has_changed(loaded->module.image))
		info->problem = "the file was changed while it was read";
	if (!info->build_id)
		info->build_id = entry->build_id;
}

static struct loaded *find_loaded(const struct modules *m, const struct map_entry *entry)
{
	for (size_t i = m->loaded.len; i-- > 0;) {
		struct loaded *loaded = m->loaded.data[i];

		if (same_file(loaded->entry, entry) && (!loaded->copy.len || starts_in(entry, &loaded->copy)))
			return loaded;
	}
	return NULL;
}

static struct loaded *add_module(struct modules *m, const struct map_entry *entry)
{
	struct loaded *loaded = calloc(1, sizeof(*loaded));

	if (!loaded || !vec_push(&m->loaded, loaded)) {
		free(loaded);
		return NULL;
	}
	loaded->entry = entry;
	loaded->module.info.path = entry->path;
	loaded->module.root_fd = m->root_fd;
	open_module(m, loaded);
	return loaded;
}

/* Mappings that are to have a module: files, and what capture copied because it is in memory only. */
static bool is_module(const struct modules *m, const struct map_entry *entry)
{
	return entry->inode != 0 || strcmp(entry->path, "[vdso]") == 0 || find_copy(m->snap, entry);
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
			if (!m->by_map[i] && code) {
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

struct proc_mem {
	struct mem mem;
	int fd; /* /proc/PID/mem */
};

static ssize_t proc_mem_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	ssize_t got = pread(((struct proc_mem *)mem)->fd, buf, len, (off_t)address);

	return got < 0 ? -errno : got;
}

/* Each mapping of code is asked, since a library may be loaded twice; the lists of both are read. */
static void copy_jit_images(struct modules *m)
{
	struct proc_mem mem = {.mem = {.read = proc_mem_read}, .fd = openat(m->proc_fd, "mem", O_RDONLY | O_CLOEXEC)};
	struct u64map seen = {0};

	for (size_t i = 0; mem.fd >= 0 && i < m->snap->maps.len; i++) {
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
			jit_images_copy(m->snap, &mem.mem, descriptor);
	}
	u64map_deinit(&seen);
	if (mem.fd >= 0)
		close(mem.fd);
}

static void open_process(struct modules *m)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)(m->snap->mm_tid ? m->snap->mm_tid : m->snap->pid));
	m->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->proc_fd >= 0)
		m->root_fd = openat(m->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Half of what we may open: the rest is for debug files and for everything else. */
static size_t open_files_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > MAX_OPEN_FILES)
		return MAX_OPEN_FILES;
	return limit.rlim_cur / 2;
}

int modules_create(struct snapshot *snap, bool ignore_deleted, struct err *err, struct modules **out)
{
	_cleanup_(cleanup_modules) struct modules *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->snap = snap;
	m->ignore_deleted = ignore_deleted;
	m->proc_fd = m->root_fd = -1;
	m->max_open_files = open_files_limit();
	m->by_map = calloc(snap->maps.len ? snap->maps.len : 1, sizeof(*m->by_map));
	if (!m->by_map)
		return err_set(err, ENOMEM, "out of memory");
	if (!snap->replayed)
		open_process(m);
	ret = assign_modules(m, err);
	if (ret < 0)
		return ret;
	if (m->proc_fd >= 0 && !snap->jit_images.len && has_loose_code(m))
		copy_jit_images(m);
	m->jit = jit_images_create(snap, m->root_fd);
	if (!m->jit)
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(m);
	return 0;
}

static void close_module(struct module *module)
{
	if (module->symbol_free)
		module->symbol_free(module->symbol);
	if (module->unwind_free)
		module->unwind_free(module->unwind);
	image_destroy(module->image);
}

static void destroy_loaded(struct loaded *loaded)
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
	free(m->by_map);
	if (m->proc_fd >= 0)
		close(m->proc_fd);
	if (m->root_fd >= 0)
		close(m->root_fd);
	free(m);
}

struct module *modules_find(struct modules *m, uint64_t address, uint64_t *vaddr)
{
	const struct map_entry *entry = maps_find(&m->snap->maps, address);
	struct loaded *loaded = entry ? m->by_map[entry - m->snap->maps.data] : NULL;
	struct module *jit = (loaded && loaded->module.image) || !m->jit ? NULL : jit_images_find(m->jit, address);
	uint64_t offset;

	if (jit) {
		*vaddr = address;
		return jit;
	}
	if (!loaded)
		return NULL;
	offset = address - entry->start + entry->offset;
	*vaddr = offset;
	if (loaded->copy.len)
		*vaddr = address - loaded->copy.start + loaded->copy_vaddr;
	else if (loaded->module.image)
		image_offset_to_vaddr(loaded->module.image, offset, vaddr);
	return &loaded->module;
}

struct image *module_take_image(struct module *module)
{
	return steal_ptr(module->image);
}

struct snapshot *modules_snapshot(const struct modules *m)
{
	return m->snap;
}

int modules_proc_fd(const struct modules *m)
{
	return m->proc_fd;
}

int modules_root_fd(const struct modules *m)
{
	return m->root_fd;
}

int modules_open_mapped(const struct modules *m, const struct map_entry *entry, struct err *err)
{
	if (m->proc_fd < 0)
		return err_set(err, ESRCH, "there is no process behind the snapshot");
	return open_live(m, entry, err);
}
