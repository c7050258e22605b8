/* SPDX-License-Identifier: MIT */
#include "proc/freezer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Where control groups are mounted everywhere: one hierarchy, beside those of the first version, or for the freezer alone. */
static const struct {
	const char *mount;
	const char *controller; /* "": the second version, which has all of them */
	const char *file;
	const char *frozen; /* what the file has then */
} places[] = {
	{"/sys/fs/cgroup", "", "cgroup.events", "frozen 1\n"},
	{"/sys/fs/cgroup/unified", "", "cgroup.events", "frozen 1\n"},
	{"/sys/fs/cgroup/freezer", "freezer", "freezer.state", "FROZEN\n"},
};

static bool is_frozen(const char *controller, const char *group)
{
	char path[4096 + 64], text[256];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(controller, places[i].controller) != 0)
			continue;
		snprintf(path, sizeof(path), "%s%s/%s", places[i].mount, group, places[i].file);
		if (process_read_file(AT_FDCWD, path, text, sizeof(text)) > 0 && strstr(text, places[i].frozen))
			return true;
	}
	return false;
}

/* "6:freezer:/group" or "0::/group". */
const char *freezer_find(const struct process *process, struct arena *arena)
{
	char text[16384], *save = NULL;

	if (process_read_file(process->dir_fd, "cgroup", text, sizeof(text)) <= 0)
		return NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controller = strchr(line, ':'), *group = controller ? strchr(controller + 1, ':') : NULL;

		if (!group || strcmp(group, ":/") == 0) /* the root is never frozen */
			continue;
		*group++ = '\0';
		if ((!controller[1] || strcmp(controller + 1, "freezer") == 0) && is_frozen(controller + 1, group))
			return arena_intern(arena, group);
	}
	return NULL;
}
