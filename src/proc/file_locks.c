/* SPDX-License-Identifier: MIT */
#include "proc/file_locks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/family.h"
#include "proc/mounts.h"

enum {
	MAX_LOCKS = 200 * 1000,	/* that are read: 30 MiB */
	MAX_LINES = 1024,	/* of the information on a descriptor */
	FIRST_PID_NAMESPACE = 0xEFFFFFFC, /* the inode that the kernel gives it (PROC_PID_INIT_INO) */
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

struct mount_search {
	uint64_t id;
	struct locked_file *out;
};

static void visit_mount(void *arg, const struct mount_entry *mount)
{
	struct mount_search *search = arg;

	if (mount->id != search->id)
		return;
	search->out->dev_major = mount->dev_major;
	search->out->dev_minor = mount->dev_minor;
}

static FILE *open_info(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* The number of the file's mount is known to its process; that of its device is the one that the lines have. */
int file_locks_find_file(const struct process *process, int fd, struct locked_file *out)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	struct mount_search search = {.out = out};
	size_t size = 0;
	char name[32];

	*out = (struct locked_file){0};
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	f = open_info(process->dir_fd, name);
	if (!f)
		return -errno;
	for (int i = 0; i < MAX_LINES && getline(&line, &size, f) > 0; i++) {
		if (strncmp(line, "mnt_id:", 7) == 0)
			search.id = strtoull(line + 7, NULL, 10);
		else if (strncmp(line, "ino:", 4) == 0)
			out->inode = strtoull(line + 4, NULL, 10);
	}
	return mounts_visit(process->dir_fd, visit_mount, &search);
}

struct search {
	struct held_lock *locks;
	size_t n;
	bool all;
};

static bool is_same(const struct file_lock *a, const struct file_lock *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->pid == b->pid &&
	       a->lock.kind == b->lock.kind && a->lock.writes == b->lock.writes && a->lock.start == b->lock.start && a->lock.end == b->lock.end;
}

static int add_holder(struct held_lock *held, pid_t pid)
{
	struct lock_holder holder = {.pid = pid};
	char path[32];
	ssize_t len;

	for (size_t i = 0; i < held->holders.len; i++)
		if (held->holders.data[i].pid == pid)
			return 0;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	len = process_read_file(AT_FDCWD, path, holder.comm, sizeof(holder.comm));
	if (len > 0 && holder.comm[len - 1] == '\n')
		holder.comm[len - 1] = '\0';
	return vec_push(&held->holders, holder) ? 0 : -ENOMEM;
}

/* What a descriptor holds is in its information: "lock:\t1: FLOCK …". */
static int look_at_info(struct search *s, pid_t pid, int infos, const char *number)
{
	_cleanup_fclose_ FILE *f = open_info(infos, number);
	_cleanup_free_ char *line = NULL;
	struct file_lock lock;
	size_t size = 0;
	int rc = 0;

	for (int n = 0; f && rc == 0 && n < MAX_LINES && getline(&line, &size, f) > 0; n++) {
		if (strncmp(line, "lock:", 5) != 0 || !file_lock_parse(line + 5 + strspn(line + 5, " \t"), &lock))
			continue;
		for (size_t i = 0; rc == 0 && i < s->n; i++)
			if (is_same(&lock, s->locks[i].lock))
				rc = add_holder(&s->locks[i], pid);
	}
	return rc;
}

/* Only files can be locked, and what looks like one. */
static bool may_be_locked(int dir, const char *number)
{
	char link[8];
	char path[48];

	snprintf(path, sizeof(path), "fd/%.32s", number);
	return readlinkat(dir, path, link, sizeof(link)) > 0 && link[0] == '/';
}

static bool is_locked_inode(const struct search *s, uint64_t inode)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->locks[i].lock->inode == inode)
			return true;
	return false;
}

/* Where the information is refused: whether none of its descriptors leads to such a file. Their inodes are known without asking a server. */
static bool has_none(const struct search *s, int dir)
{
	int fd = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *links = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool none = links;

	if (!links && fd >= 0)
		close(fd);
	while (none && (entry = readdir(links))) {
		struct statx st;

		if (entry->d_name[0] == '.')
			continue;
		if (statx(dirfd(links), entry->d_name, AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
			none = errno == ENOENT; /* it was just closed */
		else
			none = !is_locked_inode(s, st.stx_ino);
	}
	return none;
}

static int look_at_process(struct search *s, pid_t pid)
{
	_cleanup_close_ int dir = -1;
	_cleanup_closedir_ DIR *infos = NULL;
	struct dirent *entry;
	char path[32];
	int rc = 0, fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = dir < 0 ? -1 : openat(dir, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		s->all &= (errno != EACCES && errno != EPERM) || (dir >= 0 && has_none(s, dir));
		return 0;
	}
	infos = fdopendir(fd);
	if (!infos) {
		close(fd);
		return -ENOMEM;
	}
	while (rc == 0 && (entry = readdir(infos)))
		if (entry->d_name[0] != '.' && may_be_locked(dir, entry->d_name))
			rc = look_at_info(s, pid, dirfd(infos), entry->d_name);
	return rc;
}

/*
 * Else others may have it whom we do not see. In a pid namespace of our own what its first process has may come from outside; what others
 * have opened may have got there only in ways that cannot be seen in any case (SCM_RIGHTS).
 */
static bool is_all(const struct search *s, const struct held_lock *held)
{
	struct stat st;
	const bool first = stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NAMESPACE;

	for (size_t i = 0; !first && i < held->holders.len; i++)
		if (held->holders.data[i].pid == 1)
			return false;
	return s->all && held->holders.len;
}

int file_locks_find_holders(struct held_lock *locks, size_t n)
{
	struct search s = {.locks = locks, .n = n, .all = process_check_numbers(NULL) == 0 && process_sees_all()};
	struct tid_list pids = {0};
	int rc = process_list_all(&pids);

	for (size_t i = 0; rc == 0 && i < pids.len; i++)
		rc = look_at_process(&s, pids.data[i]);
	for (size_t i = 0; i < n; i++)
		locks[i].all = rc == 0 && is_all(&s, &locks[i]);
	/* Where descriptors cannot be seen, who asked for it is known all the same. */
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!locks[i].holders.len && locks[i].lock->pid > 0 && process_lives(locks[i].lock->pid))
			rc = add_holder(&locks[i], locks[i].lock->pid);
	vec_deinit(&pids);
	return rc == -ENOMEM ? rc : 0;
}
