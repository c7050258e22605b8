/* SPDX-License-Identifier: MIT */
#include "proc/file_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc/descriptors.h"
#include "proc/mounts.h"

static bool take(const struct mount_entry *mount, struct arena *arena, struct file_place *out)
{
	if (!mount)
		return false;
	out->filesystem = arena_intern(arena, mount->type);
	out->device = arena_intern(arena, mount->source);
	return out->filesystem;
}

/* 0: it is not told. */
static uint64_t read_mount(int dir, const char *info)
{
	char text[1024];
	struct descriptor d = {0};
	uint64_t mount = 0;

	if (process_read_file(dir, info, text, sizeof(text)) > 0)
		descriptor_parse_info(text, &d, &mount);
	return mount;
}

static uint64_t mount_of_file(const struct process *process, pid_t tid, int fd)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)tid, fd);
	return read_mount(process->task_fd, path);
}

/* The driver writes part of a device's fdinfo, and may not answer: it is not asked for that of a handle of our own, which has the same mount. */
static uint64_t mount_of_device(const struct process *process, pid_t tid, int fd)
{
	_cleanup_close_ int handle = -1;
	char path[48];

	snprintf(path, sizeof(path), "%d/fd/%d", (int)tid, fd);
	handle = openat(process->task_fd, path, O_PATH | O_CLOEXEC);
	if (handle < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", handle);
	return read_mount(AT_FDCWD, path);
}

/* Also in a chroot. A handle is not the way for all files: for one of 9p the kernel may ask the server. */
static bool may_be_device(const char *link)
{
	return strstr(link, "/dev/");
}

bool file_place_read(struct mount_list *mounts, pid_t tid, int fd, struct arena *arena, struct file_place *out)
{
	const struct process *process = mounts->process;
	char link[4096];
	uint64_t mount;

	*out = (struct file_place){0};
	if (process_fd_link(process, tid, fd, link, sizeof(link)) < 0 || link[0] != '/')
		return false;
	out->path = arena_intern(arena, link);
	mount = may_be_device(link) ? mount_of_device(process, tid, fd) : mount_of_file(process, tid, fd);
	if (mount)
		take(mount_list_find(mounts, mount), arena, out);
	return true;
}

bool file_place_of_device(struct mount_list *mounts, uint32_t dev_major, uint32_t dev_minor, const char *path, struct arena *arena,
			  struct file_place *out)
{
	*out = (struct file_place){.path = path};
	return take(mount_list_find_device(mounts, dev_major, dev_minor), arena, out);
}

bool file_place_of_path(struct mount_list *mounts, const char *path, struct arena *arena, struct file_place *out)
{
	*out = (struct file_place){.path = path};
	return path[0] == '/' && take(mount_list_find_path(mounts, path), arena, out);
}
