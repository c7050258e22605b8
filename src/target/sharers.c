/* SPDX-License-Identifier: MIT */
#include "target/sharers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/family.h"
#include "proc/task_status.h"
#include "target/helper.h"

/* What a helper is to do: memory maps may be locked for ever. */
struct search {
	const struct sharers *sharers;
	const pid_t *pids;
	size_t n;
};

static bool is_object(const struct sharers *s, const struct shared_object *object)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->objects[i].inode == object->inode && s->objects[i].dev_major == object->dev_major &&
		    s->objects[i].dev_minor == object->dev_minor)
			return true;
	return false;
}

/* "start-end rw-s offset major:minor inode …" */
static bool line_is_object(const struct sharers *s, const char *line)
{
	const char *perms = strchr(line, ' ');
	struct shared_object object;
	char *p;

	if (!perms || strnlen(perms, 6) < 6 || perms[4] != 's')
		return false;
	(void)strtoull(perms + 5, &p, 16);
	object.dev_major = (uint32_t)strtoul(p, &p, 16);
	if (*p != ':')
		return false;
	object.dev_minor = (uint32_t)strtoul(p + 1, &p, 16);
	object.inode = strtoull(p, NULL, 10);
	return is_object(s, &object);
}

/* 1: it shares one of them; 0: it does not, or has ended; else -errno. Nothing is allocated here. */
static int search_maps(const struct sharers *s, pid_t pid)
{
	_cleanup_close_ int fd = -1;
	char buf[8192], name[32];
	size_t len = 0;
	ssize_t got;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	while ((got = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0) {
		char *line = buf, *end;

		len += (size_t)got;
		buf[len] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (line_is_object(s, line))
				return 1;
		}
		len -= (size_t)(line - buf);
		memmove(buf, line, len);
		if (len == sizeof(buf) - 1)
			len = 0; /* a path that long: its beginning was of no use, and its end is no line */
	}
	return got < 0 && errno != ESRCH ? -errno : 0;
}

static void run_search(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const struct search *search = arg;

	(void)window;
	for (size_t i = 0; i < search->n && reply->rc == 0; i++)
		reply->rc = search_maps(search->sharers, search->pids[i]);
}

/* 1: one of these processes shares one of the objects; 0: none does; else -errno. */
static int search_all(const struct sharers *s, const pid_t *pids, size_t n)
{
	struct search search = {.sharers = s, .pids = pids, .n = n};
	const struct helper_task task = {.run = run_search, .arg = &search, .keep = {-1, -1, -1, -1}};
	struct helper_reply reply = {0};
	int rc = s->n && n ? helper_run(&task, &reply, NULL) : 0;

	return rc ? rc : reply.rc;
}

bool sharers_have(const struct sharers *sharers, pid_t pid)
{
	return search_all(sharers, &pid, 1) == 1;
}

static uint64_t namespace_of(pid_t pid, const char *which)
{
	char name[48], link[64];
	const char *number;
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/ns/%s", (int)pid, which);
	len = readlink(name, link, sizeof(link) - 1);
	if (len <= 0)
		return 0;
	link[len] = '\0';
	number = strchr(link, '[');
	return number ? strtoull(number + 1, NULL, 10) : 0;
}

/* Numbered by another namespace; if that cannot be told, it may be. Kernel threads and what has ended are not. */
static bool is_abroad(const struct snapshot *snap, pid_t pid)
{
	struct task_status status;
	char name[32];
	uint64_t ns;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	if (task_status_read(AT_FDCWD, name, &status) < 0 || status.state == 'Z')
		return false;
	if (!snap->inner_pid || status.nspids <= 1)
		return (status.nspids > 1) != (snap->inner_pid != 0);
	ns = namespace_of(pid, "pid");
	return !ns || ns != snap->pid_ns;
}

static bool is_shared_abroad(const struct sharers *s, const struct snapshot *snap)
{
	struct tid_list all = {0}, abroad = {0};
	bool doubtful = process_list_all(&all) < 0 || !process_sees_all();

	for (size_t i = 0; !doubtful && i < all.len; i++)
		if (is_abroad(snap, all.data[i]) && !vec_push(&abroad, all.data[i]))
			doubtful = true;
	doubtful = doubtful || search_all(s, abroad.data, abroad.len) != 0;
	vec_deinit(&all);
	vec_deinit(&abroad);
	return doubtful;
}

/* The shared object that a thread waits in, if it does. */
static bool waits_in_shared(const struct snapshot *snap, const struct mem_copy *copy, struct shared_object *out)
{
	const struct map_entry *map = maps_find(&snap->maps, copy->start);

	if (!map || !map->inode || !(map->perms & MAP_PERM_SHARED))
		return false;
	*out = (struct shared_object){.dev_major = map->dev_major, .dev_minor = map->dev_minor, .inode = map->inode};
	return true;
}

static void find_objects(const struct snapshot *snap, struct sharers *out)
{
	struct shared_object object;

	for (size_t i = 0; i < snap->copies.len; i++) {
		const struct snap_copy *copy = &snap->copies.data[i];

		if (!copy->tid || !waits_in_shared(snap, &copy->copy, &object) || is_object(out, &object))
			continue;
		if (out->n < MAX_SHARED_OBJECTS)
			out->objects[out->n++] = object;
		else
			out->too_many = true;
	}
}

void sharers_find(const struct process *process, struct snapshot *snap, struct sharers *out)
{
	*out = (struct sharers){0};
	find_objects(snap, out);
	if (!out->n)
		return;
	snap->pid_ns = namespace_of(process->pid, "pid");
	snap->ipc_ns = namespace_of(process->pid, "ipc");
	snap->has_doubtful_numbers = out->too_many || is_shared_abroad(out, snap);
}
