/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memfile.h"
#include "proc/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A directory that stands for /proc/PID: its "maps" is the file with this descriptor. */
static int fake_process(int fd)
{
	char dir[] = "/tmp/fuzz_maps-XXXXXX", file[64];
	int dir_fd;

	if (!mkdtemp(dir))
		abort();
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (dir_fd < 0 || symlinkat(file, dir_fd, "maps") != 0)
		abort();
	return dir_fd;
}

static void end_process(int dir_fd)
{
	char link[32], dir[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	unlinkat(dir_fd, "maps", 0);
	if (readlink(link, dir, sizeof(dir) - 1) < 0 || rmdir(dir) != 0)
		abort();
	close(dir_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfile_create(data, size);
	struct process process = {.dir_fd = -1, .task_fd = -1, .mm_fd = fake_process(fd)};
	struct arena *arena = arena_create();
	struct maps maps = {0};
	struct err err;

	if (arena && process_maps(&process, arena, &err, &maps) == 0) {
		for (size_t i = 0; i < maps.len; i++) {
			if (maps.data[i].start >= maps.data[i].end || strlen(maps.data[i].path) > size)
				abort();
			maps_find(&maps, maps.data[i].start);
		}
	}
	vec_deinit(&maps);
	arena_destroy(arena);
	end_process(process.mm_fd);
	close(fd);
	return 0;
}
