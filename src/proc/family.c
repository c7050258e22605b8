/* SPDX-License-Identifier: MIT */
#include "proc/family.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "proc/task.h"
#include "proc/task_stat.h"

struct kin {
	pid_t pid;
	pid_t parent;
};

struct kins {
	VEC_FIELDS(struct kin);
};

pid_t process_newest(void)
{
	char text[128];
	ssize_t len = process_read_file(AT_FDCWD, "/proc/loadavg", text, sizeof(text)); /* "0.1 0.2 0.3 1/100 4711" */
	const char *last = len > 0 ? strrchr(text, ' ') : NULL;

	return last ? (pid_t)atoi(last + 1) : 0;
}

int process_list_all(struct tid_list *out)
{
	_cleanup_closedir_ DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && !vec_push(out, (pid_t)atoi(entry->d_name)))
			return -ENOMEM;
	return 0;
}

pid_t process_parent(pid_t pid)
{
	struct task_stat stat;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (task_stat_read(AT_FDCWD, path, &stat) < 0 || (state_is_dead(stat.state) && !process_lives(pid)))
		return 0;
	return stat.parent;
}

bool process_is_helper(pid_t pid, pid_t self)
{
	struct task_stat stat;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return task_stat_read(AT_FDCWD, path, &stat) == 0 && stat.parent == self && !stat.exit_signal;
}

static int list_kin(struct kins *out)
{
	struct tid_list pids = {0};
	int rc = process_list_all(&pids);

	for (size_t i = 0; rc == 0 && i < pids.len; i++) {
		struct kin kin = {.pid = pids.data[i], .parent = process_parent(pids.data[i])};

		if (kin.parent && !vec_push(out, kin))
			rc = -ENOMEM;
	}
	vec_deinit(&pids);
	return rc;
}

/* 1 when it was not in the list before. */
static int add(struct tid_list *pids, struct u64map *known, pid_t pid)
{
	bool created;

	if (!u64map_put(known, (uint64_t)pid, &created))
		return -ENOMEM;
	if (!created)
		return 0;
	return vec_push(pids, pid) ? 1 : -ENOMEM;
}

/* Adds processes whose parents are known, until there are no more: a child's pid may be lower than its parent's. */
static int add_descendants(struct tid_list *pids, struct u64map *known, const struct kins *all)
{
	bool more = true;
	int rc;

	while (more) {
		more = false;
		for (size_t i = 0; i < all->len; i++) {
			if (!u64map_find(known, (uint64_t)all->data[i].parent))
				continue;
			rc = add(pids, known, all->data[i].pid);
			if (rc < 0)
				return rc;
			more |= rc;
		}
	}
	return 0;
}

int process_add_descendants(struct tid_list *pids)
{
	struct kins all = {0};
	struct u64map known = {0};
	int rc = list_kin(&all);
	bool created;

	for (size_t i = 0; rc == 0 && i < pids->len; i++)
		if (!u64map_put(&known, (uint64_t)pids->data[i], &created))
			rc = -ENOMEM;
	if (rc == 0)
		rc = add_descendants(pids, &known, &all);
	vec_deinit(&all);
	u64map_deinit(&known);
	return rc;
}

int process_ids_add_descendants(struct process_ids *ids, struct err *err)
{
	struct tid_list pids = {0};
	pid_t self = process_self();
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ids->len; i++)
		rc = vec_push(&pids, ids->data[i].pid) ? 0 : -ENOMEM;
	if (rc == 0)
		rc = process_add_descendants(&pids);
	for (size_t i = ids->len; rc == 0 && i < pids.len; i++)
		if (pids.data[i] != self && !vec_push(ids, (struct process_id){.pid = pids.data[i]}))
			rc = -ENOMEM;
	vec_deinit(&pids);
	return rc < 0 ? err_set(err, -rc, "listing the children: %s", strerror(-rc)) : 0;
}
