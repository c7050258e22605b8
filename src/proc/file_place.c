/* SPDX-License-Identifier: MIT */
#include "proc/file_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/mounts.h"

struct search {
	uint64_t mount;
	struct arena *arena;
	struct file_place *out;
};

static void visit(void *arg, const struct mount_entry *mount)
{
	struct search *search = arg;

	if (mount->id != search->mount)
		return;
	search->out->filesystem = arena_intern(search->arena, mount->type);
	search->out->device = arena_intern(search->arena, mount->source);
}

static uint64_t mount_of(const struct process *process, int fd)
{
	char path[32], text[1024];
	const char *line;
	ssize_t len;

	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	len = process_read_file(process->dir_fd, path, text, sizeof(text));
	line = len > 0 ? strstr(text, "\nmnt_id:\t") : NULL;
	return line ? strtoull(line + 9, NULL, 10) : 0;
}

bool file_place_read(const struct process *process, int fd, struct arena *arena, struct file_place *out)
{
	char link[4096];
	struct search search = {.arena = arena, .out = out};

	*out = (struct file_place){0};
	if (process_fd_link(process, fd, link, sizeof(link)) < 0 || link[0] != '/')
		return false;
	out->path = arena_intern(arena, link);
	search.mount = mount_of(process, fd);
	if (search.mount)
		mounts_visit(process->dir_fd, visit, &search);
	return true;
}
