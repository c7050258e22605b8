/* SPDX-License-Identifier: MIT */
#include "proc/file_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/descriptor_walk.h"
#include "proc/descriptors.h"

enum {
	MAX_LOCKS = 200 * 1000,	/* that are read: 30 MiB */
	MAX_LINES = 1024,	/* of the information on a descriptor */
};

/* One word, and the spaces behind it; false when there is none. */
static bool word(const char **p, char *out, size_t size)
{
	size_t n = strcspn(*p, " \t\n");

	if (!n || n >= size)
		return false;
	memcpy(out, *p, n);
	out[n] = '\0';
	*p += n;
	*p += strspn(*p, " \t");
	return true;
}

static bool parse_kind(const char *text, struct wanted_lock *out)
{
	out->kind = strcmp(text, "FLOCK") == 0    ? LOCK_BY_FLOCK
		    : strcmp(text, "POSIX") == 0  ? LOCK_BY_FCNTL
		    : strcmp(text, "OFDLCK") == 0 ? LOCK_BY_OFD
						  : LOCK_NONE;
	return out->kind != LOCK_NONE;
}

/* "FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF", before it "17: ", or "17: -> ". */
bool file_lock_parse(const char *line, struct file_lock *out)
{
	char kind[16], how[16], access[16], pid[16], file[48], start[24], end[24], *stop;

	*out = (struct file_lock){.id = strtoull(line, &stop, 10)};
	if (stop == line || *stop != ':')
		return false;
	line = stop + 1 + strspn(stop + 1, " \t");
	if (strncmp(line, "->", 2) == 0) {
		out->waits = true;
		line += 2 + strspn(line + 2, " \t");
	}
	if (!word(&line, kind, sizeof(kind)) || !word(&line, how, sizeof(how)) || !word(&line, access, sizeof(access)) || !word(&line, pid, sizeof(pid)) ||
	    !word(&line, file, sizeof(file)) || !word(&line, start, sizeof(start)) || !word(&line, end, sizeof(end)))
		return false;
	if (!parse_kind(kind, &out->lock) || sscanf(file, "%" SCNx32 ":%" SCNx32 ":%" SCNu64, &out->dev_major, &out->dev_minor, &out->inode) != 3)
		return false;
	out->pid = (pid_t)strtol(pid, NULL, 10);
	out->lock.writes = strcmp(access, "READ") != 0;
	out->lock.start = strtoull(start, NULL, 10);
	out->lock.end = strcmp(end, "EOF") == 0 ? UINT64_MAX : strtoull(end, NULL, 10);
	return true;
}

int file_locks_read(struct file_locks *out)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/locks", "re");
	_cleanup_free_ char *line = NULL;
	struct file_lock lock;
	size_t size = 0;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0) {
		if (!file_lock_parse(line, &lock))
			continue;
		out->cut = out->len >= MAX_LOCKS;
		if (out->cut)
			break;
		if (!vec_push(out, lock))
			return -ENOMEM;
	}
	return ferror(f) ? -EIO : 0;
}

/* The number of the file's mount is known to its process; that of its device is the one that the lines have. */
bool file_locks_find_file(struct mount_list *mounts, pid_t tid, int fd, struct locked_file *out)
{
	const struct mount_entry *mount;
	struct descriptor d = {0};
	char name[48], text[1024];
	uint64_t id = 0;

	snprintf(name, sizeof(name), "%d/fdinfo/%d", (int)tid, fd);
	if (process_read_file(mounts->process->task_fd, name, text, sizeof(text)) > 0)
		descriptor_parse_info(text, &d, &id);
	mount = id && d.inode ? mount_list_find(mounts, id) : NULL;
	*out = mount ? (struct locked_file){mount->dev_major, mount->dev_minor, d.inode} : (struct locked_file){0};
	return mount;
}

struct search {
	struct held_lock *locks;
	size_t n;
	pthread_mutex_t lock; /* of what is found */
};

static bool is_same(const struct file_lock *a, const struct file_lock *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->pid == b->pid &&
	       a->lock.kind == b->lock.kind && a->lock.writes == b->lock.writes && a->lock.start == b->lock.start && a->lock.end == b->lock.end;
}

static int add_holder(struct held_lock *held, pid_t pid)
{
	struct holder *holder = holders_add(&held->holders, pid);

	if (holder)
		holder_read_name(holder);
	return holder ? 0 : -ENOMEM;
}

static int add_holder_of(struct search *s, const struct file_lock *lock, pid_t pid)
{
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; rc == 0 && i < s->n; i++)
		if (is_same(lock, s->locks[i].lock))
			rc = add_holder(&s->locks[i], pid);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* What a descriptor holds is in its information: "lock:\t1: FLOCK …". */
static int look_at_info(struct search *s, pid_t pid, int info)
{
	_cleanup_fclose_ FILE *f = fdopen(info, "r");
	_cleanup_free_ char *line = NULL;
	struct file_lock lock;
	size_t size = 0;
	int rc = 0, n = 0;

	if (!f) {
		close(info);
		return -ENOMEM;
	}
	while (rc == 0 && getline(&line, &size, f) > 0) {
		if (n++ == MAX_LINES)
			rc = -E2BIG;
		else if (strncmp(line, "lock:", 5) == 0 && file_lock_parse(line + 5 + strspn(line + 5, " \t"), &lock))
			rc = add_holder_of(s, &lock, pid);
	}
	return rc;
}

/* For descriptor_walk(). Only files can be locked, and what looks like one; devices, too, but their drivers may not answer. */
static int look_at(void *arg, pid_t pid, int dir, const char *number)
{
	char link[17] = "", path[300];
	int info;

	if (readlinkat(dir, number, link, sizeof(link) - 1) < 0)
		return -errno;
	if (link[0] != '/' || descriptor_is_device(link))
		return 0;
	snprintf(path, sizeof(path), "../fdinfo/%s", number);
	info = openat(dir, path, O_RDONLY | O_CLOEXEC);
	return info < 0 ? -errno : look_at_info(arg, pid, info);
}

int file_locks_find_holders(struct held_lock *locks, size_t n, bool *refused)
{
	struct search s = {.locks = locks, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER};
	bool all = true;
	int rc = descriptor_walk(look_at, &s, &all);

	*refused = rc == 0 && !all;
	all &= process_check_numbers(NULL) == 0;
	for (size_t i = 0; rc == 0 && i < n; i++)
		holders_judge(&locks[i].holders, all);
	/* Where descriptors cannot be seen, who asked for it is known all the same. */
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!locks[i].holders.len && locks[i].lock->pid > 0 && process_lives(locks[i].lock->pid))
			rc = add_holder(&locks[i], locks[i].lock->pid);
	return rc == -ENOMEM ? rc : 0;
}
