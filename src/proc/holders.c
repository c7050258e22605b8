/* SPDX-License-Identifier: MIT */
#include "proc/holders.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "proc/descriptor_walk.h"
#include "proc/descriptors.h"
#include "proc/process.h"

enum { FIRST_PID_NAMESPACE = 0xEFFFFFFC }; /* the inode that the kernel gives it (PROC_PID_INIT_INO) */

struct search {
	struct held *things;
	size_t n;
	struct u64map by_inode; /* of pipes and sockets */
	bool any_fifo;
	bool (*is_local)(int dir_fd, uint64_t mount);
	pthread_mutex_t lock; /* of what is found */
};

/* Pipes and sockets are of two file systems. */
static uint64_t key_of(enum descriptor_kind kind, uint64_t inode)
{
	return inode << 1 | (kind == DESCRIPTOR_SOCKET);
}

static int init(struct search *s)
{
	if (!u64map_reserve(&s->by_inode, s->n))
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		bool created;
		uint64_t *slot;

		s->any_fifo |= s->things[i].kind == DESCRIPTOR_FIFO;
		if (s->things[i].kind == DESCRIPTOR_FIFO)
			continue;
		slot = u64map_put(&s->by_inode, key_of(s->things[i].kind, s->things[i].inode), &created);
		if (!slot)
			return -ENOMEM;
		*slot = i;
	}
	return 0;
}

struct holder *holders_add(struct holders *holders, pid_t pid)
{
	for (size_t i = holders->len; i > 0; i--)
		if (holders->data[i - 1].pid == pid)
			return &holders->data[i - 1];
	return vec_push(holders, (struct holder){.pid = pid}) ? &holders->data[holders->len - 1] : NULL;
}

void holder_read_name(struct holder *holder)
{
	char path[32];
	ssize_t len;

	if (holder->comm[0])
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)holder->pid);
	len = process_read_file(AT_FDCWD, path, holder->comm, sizeof(holder->comm));
	if (len > 0 && holder->comm[len - 1] == '\n')
		holder->comm[len - 1] = '\0';
}

/* The permissions of the link are those of the descriptor. */
static int add_holder(struct search *s, struct held *thing, pid_t pid, int dir, const char *number)
{
	struct holder *holder;
	struct stat st;

	if (fstatat(dir, number, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* it was just closed */
	pthread_mutex_lock(&s->lock);
	holder = holders_add(&thing->holders, pid);
	if (holder) {
		holder_read_name(holder);
		holder->reads |= (st.st_mode & S_IRUSR) != 0;
		holder->writes |= (st.st_mode & S_IWUSR) != 0;
	}
	pthread_mutex_unlock(&s->lock);
	return holder ? 0 : -ENOMEM;
}

/* Zeros if it cannot be told. */
static void read_info(int dir, const char *path, struct descriptor *info, uint64_t *mount)
{
	char text[1024];

	*info = (struct descriptor){0};
	*mount = 0;
	if (process_read_file(dir, path, text, sizeof(text)) > 0)
		descriptor_parse_info(text, info, mount);
}

/*
 * Which fifo it is: the same path may be another one elsewhere, and the same number of an inode, too. By a handle, whose mount is looked at first:
 * the number may be that of another file by now.
 */
static bool identify(const struct search *s, int dir, const char *number, struct statx *out)
{
	_cleanup_close_ int handle = openat(dir, number, O_PATH | O_CLOEXEC), process = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct descriptor info;
	uint64_t mount;
	char path[48];

	if (handle < 0 || process < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", handle);
	read_info(AT_FDCWD, path, &info, &mount);
	return mount && s->is_local(process, mount) && statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, out) == 0 &&
	       S_ISFIFO(out->stx_mode);
}

/* Some file systems have other numbers in fdinfo than in stat(), and before Linux 5.14 there are none: then the path has to be the same. */
static bool may_be_fifo(const struct search *s, uint64_t inode, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->things[i].kind == DESCRIPTOR_FIFO && ((inode && s->things[i].inode == inode) || strcmp(s->things[i].path, path) == 0))
			return true;
	return false;
}

static int look_at_path(struct search *s, pid_t pid, int dir, const char *number, const char *path)
{
	struct descriptor info;
	uint64_t mount;
	struct statx st;
	char name[300];
	int rc = 0;

	if (descriptor_is_device(path))
		return 0;
	snprintf(name, sizeof(name), "../fdinfo/%s", number);
	read_info(dir, name, &info, &mount);
	if (!may_be_fifo(s, info.inode, path) || !identify(s, dir, number, &st))
		return 0;
	for (size_t i = 0; rc == 0 && i < s->n; i++)
		if (s->things[i].kind == DESCRIPTOR_FIFO && s->things[i].inode == st.stx_ino && s->things[i].device == descriptor_device(&st))
			rc = add_holder(s, &s->things[i], pid, dir, number);
	return rc;
}

/* For descriptor_walk(). */
static int look_at(void *arg, pid_t pid, int dir, const char *number)
{
	struct search *s = arg;
	char link[4096];
	ssize_t len = readlinkat(dir, number, link, sizeof(link) - 1);
	struct descriptor d = {0};
	const uint64_t *slot;

	if (len < 0)
		return -errno;
	if (link[0] != 'p' && link[0] != 's' && !(s->any_fifo && link[0] == '/'))
		return 0;
	link[len] = '\0';
	if (link[0] == '/')
		return look_at_path(s, pid, dir, number, link);
	descriptor_parse_link(link, &d);
	slot = d.inode ? u64map_find(&s->by_inode, key_of(d.kind, d.inode)) : NULL;
	return slot ? add_holder(s, &s->things[*slot], pid, dir, number) : 0;
}

static int compare_holders(const void *a, const void *b)
{
	const pid_t x = ((const struct holder *)a)->pid, y = ((const struct holder *)b)->pid;

	return (x > y) - (x < y);
}

static bool in_first_namespace(void)
{
	struct stat st;

	return process_check_numbers(NULL) == 0 && stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NAMESPACE;
}

/*
 * In a pid namespace of our own we see only those who are in it. What its first process has may come from outside; what others have made
 * may have got there only in ways that cannot be seen in any case (SCM_RIGHTS).
 */
void holders_judge(struct holders *holders, bool all)
{
	if (!holders->len)
		return;
	qsort(holders->data, holders->len, sizeof(*holders->data), compare_holders);
	holders->all = all && (holders->data[0].pid != 1 || in_first_namespace());
}

int holders_find(struct held *things, size_t n, bool (*is_local)(int dir_fd, uint64_t mount), bool *refused)
{
	struct search s = {.things = things, .n = n, .is_local = is_local, .lock = PTHREAD_MUTEX_INITIALIZER};
	bool all = true;
	int rc = init(&s);

	if (rc == 0)
		rc = descriptor_walk(look_at, &s, &all);
	for (size_t i = 0; rc == 0 && i < n; i++)
		holders_judge(&things[i].holders, all);
	*refused = rc == 0 && !all;
	u64map_deinit(&s.by_inode);
	return rc;
}
