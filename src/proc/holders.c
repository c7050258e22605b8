/* SPDX-License-Identifier: MIT */
#include "proc/holders.h"

#include <dirent.h>
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
#include "base/parallel.h"
#include "proc/descriptors.h"
#include "proc/family.h"
#include "proc/task.h"
#include "proc/task_stat.h"

enum { FIRST_PID_NAMESPACE = 0xEFFFFFFC }; /* the inode that the kernel gives it (PROC_PID_INIT_INO) */

struct search {
	struct held *things;
	size_t n;
	int proc; /* /proc */
	struct u64map by_inode; /* of pipes and sockets */
	struct u64map seen;	/* processes */
	bool any_fifo;
	struct tid_list pids; /* of this round: several threads look at them */
	pthread_mutex_t lock; /* of all that follows, and of what is found */
	bool all;
	int rc;
};

/* Pipes and sockets are of two file systems. */
static uint64_t key_of(enum descriptor_kind kind, uint64_t inode)
{
	return inode << 1 | (kind == DESCRIPTOR_SOCKET);
}

static int init(struct search *s)
{
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

struct holder *holders_add(struct held *thing, pid_t pid)
{
	for (size_t i = thing->holders.len; i > 0; i--)
		if (thing->holders.data[i - 1].pid == pid)
			return &thing->holders.data[i - 1];
	return vec_push(&thing->holders, (struct holder){.pid = pid}) ? &thing->holders.data[thing->holders.len - 1] : NULL;
}

static void read_name(struct holder *holder)
{
	char path[32];
	ssize_t len;

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
	holder = holders_add(thing, pid);
	if (holder) {
		if (!holder->comm[0])
			read_name(holder);
		holder->reads |= (st.st_mode & S_IRUSR) != 0;
		holder->writes |= (st.st_mode & S_IWUSR) != 0;
	}
	pthread_mutex_unlock(&s->lock);
	return holder ? 0 : -ENOMEM;
}

/* The same path may be another file elsewhere. Older kernels do not tell. */
static bool has_inode(int dir, const char *number, uint64_t inode)
{
	struct descriptor d = {0};
	char path[300], text[1024];
	uint64_t mount;

	snprintf(path, sizeof(path), "../fdinfo/%s", number);
	if (process_read_file(dir, path, text, sizeof(text)) > 0)
		descriptor_parse_info(text, &d, &mount);
	return !d.inode || d.inode == inode;
}

static int look_at_path(struct search *s, pid_t pid, int dir, const char *number, const char *path)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++)
		if (s->things[i].kind == DESCRIPTOR_FIFO && strcmp(s->things[i].path, path) == 0 && has_inode(dir, number, s->things[i].inode))
			rc = add_holder(s, &s->things[i], pid, dir, number);
	return rc;
}

/* What has ended, or was closed, has nothing; of anything else it is not known. */
static void note_error(struct search *s, int error)
{
	if (error == ENOENT || error == ESRCH)
		return;
	pthread_mutex_lock(&s->lock);
	s->all = false;
	pthread_mutex_unlock(&s->lock);
}

static int look_at(struct search *s, pid_t pid, int dir, const char *number)
{
	char link[4096];
	ssize_t len = readlinkat(dir, number, link, sizeof(link) - 1);
	struct descriptor d = {0};
	const uint64_t *slot;

	if (len < 0)
		note_error(s, errno);
	if (len < 0 || (link[0] != 'p' && link[0] != 's' && !(s->any_fifo && link[0] == '/')))
		return 0;
	link[len] = '\0';
	if (link[0] == '/')
		return look_at_path(s, pid, dir, number, link);
	descriptor_parse_link(link, &d);
	slot = d.inode ? u64map_find(&s->by_inode, key_of(d.kind, d.inode)) : NULL;
	return slot ? add_holder(s, &s->things[*slot], pid, dir, number) : 0;
}

/* How many descriptors there are in these entries of a directory, or -errno. */
static int look_at_entries(struct search *s, pid_t pid, int dir, const uint8_t *entries, size_t len)
{
	int n = 0, rc;

	for (size_t at = 0; at < len;) {
		const struct dirent64 *entry = (const struct dirent64 *)(entries + at);

		at += entry->d_reclen;
		if (entry->d_name[0] == '.')
			continue;
		rc = look_at(s, pid, dir, entry->d_name);
		if (rc < 0)
			return rc;
		n++;
	}
	return n;
}

/*
 * The same for all of it. Not by readdir(): it is done for each process of the machine, and one more system call in each of them is a fifth of what
 * it takes.
 */
static int look_at_directory(struct search *s, pid_t pid, const char *path)
{
	_Alignas(struct dirent64) uint8_t entries[32 << 10];
	_cleanup_close_ int dir = openat(s->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t len = sizeof(entries);
	int n = 0, rc = 0;

	if (dir < 0)
		return -errno;
	while (rc >= 0 && len > 0) {
		len = getdents64(dir, entries, sizeof(entries));
		if (len < 0)
			return -errno;
		rc = look_at_entries(s, pid, dir, entries, (size_t)len);
		n += rc;
	}
	return rc < 0 ? rc : n;
}

/* A main thread that has ended has none any more; the others still have theirs. */
static int look_at_threads(struct search *s, pid_t pid)
{
	struct tid_list tids = {0};
	struct process process;
	char path[64];
	int rc = process_open(pid, NULL, &process);

	if (rc < 0)
		return 0;
	rc = process_list_tids(&process, &tids);
	process_close(&process);
	for (size_t i = 0; rc != -ENOMEM && i < tids.len; i++) {
		snprintf(path, sizeof(path), "%d/task/%d/fd", (int)pid, (int)tids.data[i]);
		rc = look_at_directory(s, pid, path);
		if (rc < 0 && tids.data[i] != pid) /* which is the one that has ended */
			note_error(s, -rc);
	}
	vec_deinit(&tids);
	return rc < 0 && rc != -ENOMEM ? 0 : rc;
}

static bool has_ended(pid_t pid)
{
	struct task_stat stat;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return task_stat_read(AT_FDCWD, path, &stat) == 0 && state_is_dead(stat.state);
}

/* For parallel_for(). */
static void look_at_process(void *arg, size_t i)
{
	struct search *s = arg;
	const pid_t pid = s->pids.data[i];
	char path[32];
	int n;

	snprintf(path, sizeof(path), "%d/fd", (int)pid);
	n = look_at_directory(s, pid, path);
	if (n <= 0 && n != -ENOMEM && n != -ENOENT && has_ended(pid))
		n = look_at_threads(s, pid);
	if (n >= 0)
		return;
	note_error(s, -n);
	pthread_mutex_lock(&s->lock);
	s->rc = n == -ENOMEM ? n : s->rc;
	pthread_mutex_unlock(&s->lock);
}

/* Those that are there, but for those that were seen before. */
static int look_at_all(struct search *s)
{
	size_t kept = 0;
	int rc;

	s->pids.len = 0;
	rc = process_list_all(&s->pids);
	for (size_t i = 0; rc == 0 && i < s->pids.len; i++) {
		bool created;

		if (!u64map_put(&s->seen, (uint64_t)s->pids.data[i], &created))
			rc = -ENOMEM;
		else if (created)
			s->pids.data[kept++] = s->pids.data[i];
	}
	s->pids.len = kept;
	if (rc == 0)
		parallel_for(kept, look_at_process, s);
	return rc < 0 ? rc : s->rc;
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
void holders_judge(struct held *things, size_t n, bool all)
{
	const bool first = in_first_namespace();

	for (size_t i = 0; i < n; i++) {
		struct held *thing = &things[i];

		if (thing->holders.len)
			qsort(thing->holders.data, thing->holders.len, sizeof(*thing->holders.data), compare_holders);
		thing->all = all;
		for (size_t k = 0; !first && k < thing->holders.len; k++)
			thing->all &= thing->holders.data[k].pid != 1;
	}
}

int holders_find(struct held *things, size_t n, bool *refused)
{
	struct search s = {.things = things, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER, .all = process_sees_all()};
	int rc = init(&s);

	s.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rc == 0 && s.proc < 0)
		rc = -errno;
	if (rc == 0)
		rc = look_at_all(&s);
	if (rc == 0)
		rc = look_at_all(&s); /* who was started meanwhile has what its parent had */
	if (rc == 0)
		holders_judge(things, n, s.all);
	*refused = !s.all;
	cleanup_close(&s.proc);
	u64map_deinit(&s.by_inode);
	u64map_deinit(&s.seen);
	vec_deinit(&s.pids);
	return rc;
}
