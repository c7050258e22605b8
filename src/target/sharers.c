/* SPDX-License-Identifier: MIT */
#include "target/sharers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/family.h"
#include "proc/task_status.h"
#include "target/helper.h"

enum {
	MAX_OBJECTS = 16, /* that are waited for in; with more, all numbers are doubtful */
	MAX_NUMBERS = 64, /* that are looked up */
	LOCK_WORDS = 16,
};

/* A file, or what is mapped like one. */
struct object {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
};

struct sharing {
	const struct process *process;
	struct snapshot *snap;
	struct object objects[MAX_OBJECTS];
	size_t nobjects;
	bool too_many;
	unsigned lookups;
};

/* What a helper is to do: memory maps may be locked for ever. */
struct search {
	const struct sharing *sharing;
	const pid_t *pids;
	size_t n;
};

static bool is_object(const struct sharing *s, const struct object *object)
{
	for (size_t i = 0; i < s->nobjects; i++)
		if (s->objects[i].inode == object->inode && s->objects[i].dev_major == object->dev_major &&
		    s->objects[i].dev_minor == object->dev_minor)
			return true;
	return false;
}

/* "start-end rw-s offset major:minor inode …" */
static bool line_is_object(const struct sharing *s, const char *line)
{
	const char *perms = strchr(line, ' ');
	struct object object;
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
static int search_maps(const struct sharing *s, pid_t pid)
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
		reply->rc = search_maps(search->sharing, search->pids[i]);
}

/* Whether one of these processes shares one of the objects; true also where that cannot be told, if `unless_known`. */
static bool any_shares(const struct sharing *s, const pid_t *pids, size_t n, bool unless_known)
{
	struct search search = {.sharing = s, .pids = pids, .n = n};
	const struct helper_task task = {.run = run_search, .arg = &search, .keep = {-1, -1, -1, -1}};
	struct helper_reply reply = {0};
	int rc = n ? helper_run(&task, &reply, NULL) : 0;

	if (rc == 0)
		rc = n ? reply.rc : 0;
	return rc == 1 || (rc < 0 && unless_known);
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
static bool is_abroad(const struct sharing *s, pid_t pid)
{
	struct task_status status;
	char name[32];
	uint64_t ns;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	if (task_status_read(AT_FDCWD, name, &status) < 0 || status.state == 'Z')
		return false;
	if (!s->snap->inner_pid || status.nspids <= 1)
		return (status.nspids > 1) != (s->snap->inner_pid != 0);
	ns = namespace_of(pid, "pid");
	return !ns || ns != s->snap->pid_ns;
}

static bool is_shared_abroad(const struct sharing *s)
{
	struct tid_list all = {0}, abroad = {0};
	bool doubtful = process_list_all(&all) < 0 || !process_sees_all();

	for (size_t i = 0; !doubtful && i < all.len; i++)
		if (is_abroad(s, all.data[i]) && !vec_push(&abroad, all.data[i]))
			doubtful = true;
	doubtful = doubtful || any_shares(s, abroad.data, abroad.len, true);
	vec_deinit(&all);
	vec_deinit(&abroad);
	return doubtful;
}

/* The shared object that a thread waits in, if it does; then with the words that it waits for. */
static bool waits_in_shared(const struct snapshot *snap, const struct mem_copy *copy, struct object *out)
{
	const struct map_entry *map = maps_find(&snap->maps, copy->start);

	if (!map || !map->inode || !(map->perms & MAP_PERM_SHARED))
		return false;
	*out = (struct object){.dev_major = map->dev_major, .dev_minor = map->dev_minor, .inode = map->inode};
	return true;
}

static bool is_own_number(const struct snapshot *snap, uint32_t number)
{
	for (size_t i = 0; i < snap->threads.len; i++)
		if ((uint32_t)snap->threads.data[i].tid == number)
			return true;
	for (size_t i = 0; i < snap->strangers.len; i++)
		if (snap->strangers.data[i].number == number)
			return true;
	return false;
}

/* If it is a thread of another process which shares such memory: only in the pid namespace of /proc its number can be looked up. */
static void find_stranger(struct sharing *s, uint32_t number)
{
	struct snap_stranger stranger = {.number = number};
	struct task_status status;
	char name[32];

	if (number < 2 || number > INT32_MAX || is_own_number(s->snap, number) || s->lookups >= MAX_NUMBERS)
		return;
	s->lookups++;
	snprintf(name, sizeof(name), "/proc/%u/status", number);
	if (task_status_read(AT_FDCWD, name, &status) < 0 || status.nspids > 1 || status.tgid <= 0 || status.tgid == s->snap->pid)
		return;
	snprintf(name, sizeof(name), "/proc/%d/status", (int)status.tgid);
	stranger.pid = status.tgid;
	if (task_status_read(AT_FDCWD, name, &status) < 0 || !any_shares(s, &stranger.pid, 1, false))
		return;
	stranger.comm = arena_intern(s->snap->arena, status.name);
	if (stranger.comm)
		(void)vec_push(&s->snap->strangers, stranger);
}

static void find_strangers(struct sharing *s)
{
	struct object object;

	for (size_t i = 0; i < s->snap->copies.len; i++) {
		const struct mem_copy *copy = &s->snap->copies.data[i].copy;

		if (!s->snap->copies.data[i].tid || !waits_in_shared(s->snap, copy, &object))
			continue;
		for (size_t k = 0; k < LOCK_WORDS && (k + 1) * sizeof(uint32_t) <= copy->len; k++) {
			uint32_t word;

			memcpy(&word, copy->data + k * sizeof(word), sizeof(word));
			find_stranger(s, word & FUTEX_TID_MASK);
		}
	}
}

static void find_objects(struct sharing *s)
{
	struct object object;

	for (size_t i = 0; i < s->snap->copies.len; i++) {
		const struct snap_copy *copy = &s->snap->copies.data[i];

		if (!copy->tid || !waits_in_shared(s->snap, &copy->copy, &object) || is_object(s, &object))
			continue;
		if (s->nobjects < MAX_OBJECTS)
			s->objects[s->nobjects++] = object;
		else
			s->too_many = true;
	}
}

void sharers_find(const struct process *process, struct snapshot *snap)
{
	struct sharing s = {.process = process, .snap = snap};

	find_objects(&s);
	if (!s.nobjects)
		return;
	snap->pid_ns = namespace_of(process->pid, "pid");
	snap->ipc_ns = namespace_of(process->pid, "ipc");
	snap->has_doubtful_numbers = s.too_many || is_shared_abroad(&s);
	if (!snap->inner_pid)
		find_strangers(&s);
}
