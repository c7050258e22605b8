/* SPDX-License-Identifier: MIT */
#include "symbol/process_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "arch/arch.h"
#include "base/cleanup.h"
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

static int read_process(const struct process *process, struct process_files *files, struct err *err)
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
	return modules_create(files->snap, false, err, &files->modules);
}

int process_files_open(pid_t pid, struct err *err, struct process_files *out)
{
	struct process_files files = {0};
	struct process process;
	int rc = process_open(pid, err, &process);

	if (rc < 0)
		return rc;
	process_find_memory(&process);
	rc = read_process(&process, &files, err);
	process_close(&process);
	if (rc < 0)
		process_files_close(&files);
	else
		*out = files;
	return rc;
}

void process_files_close(struct process_files *files)
{
	modules_destroy(files->modules);
	snapshot_destroy(files->snap);
	*files = (struct process_files){0};
}
