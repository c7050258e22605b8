/* SPDX-License-Identifier: MIT */
#include "target/process_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "proc/process.h"

enum { MAX_VDSO = 1 << 20 };

static void copy_vdso(const struct process *process, struct snapshot *snap)
{
	_cleanup_close_ int mem_fd = openat(process->mm_fd, "mem", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; mem_fd >= 0 && i < snap->maps.len; i++) {
		const struct map_entry *e = &snap->maps.data[i];
		struct mem_copy copy = {.start = e->start, .len = e->end - e->start, .region_end = e->end};

		if (strcmp(e->path, "[vdso]") != 0 || copy.len > MAX_VDSO)
			continue;
		copy.data = arena_alloc(snap->arena, copy.len);
		if (copy.data && pread(mem_fd, copy.data, copy.len, (off_t)copy.start) == (ssize_t)copy.len)
			vec_push(&snap->images, copy); /* else it stays without names */
	}
}

/* 0 when that is not permitted. */
static uint64_t identity_of(const struct process *process, const struct map_entry *entry)
{
	_cleanup_close_ int fd = -1;
	char link[64];

	snprintf(link, sizeof(link), "map_files/%llx-%llx", (unsigned long long)entry->start,
		 (unsigned long long)entry->end);
	fd = openat(process->mm_fd, link, O_PATH | O_CLOEXEC);
	return fd < 0 ? 0 : image_identity_of(fd);
}

struct known {
	process_files_known_fn is_known; /* NULL: no file is */
	void *arg;
	VEC(size_t) entries;
};

/* Modules are made of what is executable. */
static int hide_known(const struct process *process, struct maps *maps, struct known *known, struct err *err)
{
	for (size_t i = 0; known->is_known && i < maps->len; i++) {
		struct map_entry *entry = &maps->data[i];

		if (!(entry->perms & MAP_PERM_EXEC) || !entry->inode)
			continue;
		if (!vec_reserve(&known->entries, known->entries.len + 1))
			return err_set(err, ENOMEM, "out of memory");
		if (!known->is_known(known->arg, entry, identity_of(process, entry)))
			continue;
		entry->perms &= ~MAP_PERM_EXEC;
		vec_push(&known->entries, i);
	}
	return 0;
}

static void show_known(struct maps *maps, struct known *known)
{
	for (size_t i = 0; i < known->entries.len; i++)
		maps->data[known->entries.data[i]].perms |= MAP_PERM_EXEC;
	vec_deinit(&known->entries);
}

static int read_process(const struct process *process, struct known *known, struct process_files *files,
			struct err *err)
{
	struct process_info info;
	int rc;

	if (process_info(process, &info) < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)process->pid);
	if (info.kernel_thread)
		return err_set(err, EINVAL, "process %d is a kernel thread: it has no memory map", (int)process->pid);
	files->snap = snapshot_create(process->pid, arch_host());
	if (!files->snap)
		return err_set(err, ENOMEM, "out of memory");
	files->snap->mm_tid = process->mm_tid;
	rc = process_maps(process, files->snap->arena, err, &files->snap->maps);
	if (rc < 0)
		return rc;
	if (!files->snap->maps.len)
		return err_set(err, ESRCH, "process %d has ended: it has no memory map", (int)process->pid);
	copy_vdso(process, files->snap);
	rc = hide_known(process, &files->snap->maps, known, err);
	if (rc == 0)
		rc = modules_create(files->snap, false, err, &files->modules);
	show_known(&files->snap->maps, known);
	return rc;
}

int process_files_open_others(pid_t pid, process_files_known_fn is_known, void *arg, struct err *err,
			      struct process_files *out)
{
	struct known known = {.is_known = is_known, .arg = arg};
	struct process_files files = {0};
	struct process process;
	int rc = process_open(pid, err, &process);

	if (rc < 0)
		return rc;
	process_find_memory(&process);
	rc = read_process(&process, &known, &files, err);
	process_close(&process);
	if (rc < 0)
		process_files_close(&files);
	else
		*out = files;
	return rc;
}

int process_files_open(pid_t pid, struct err *err, struct process_files *out)
{
	return process_files_open_others(pid, NULL, NULL, err, out);
}

void process_files_close(struct process_files *files)
{
	modules_destroy(files->modules);
	snapshot_destroy(files->snap);
	*files = (struct process_files){0};
}

uint64_t process_files_generation(pid_t pid)
{
	struct process_info info;
	struct process process;
	uint64_t generation = 0;

	if (process_open(pid, NULL, &process) < 0)
		return 0;
	if (process_info(&process, &info) == 0)
		generation = hash_u64(process_generation(&process), info.start_time);
	process_close(&process);
	return generation;
}
