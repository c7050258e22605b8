/* SPDX-License-Identifier: MIT */
#include "proc/descriptor_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/parallel.h"
#include "proc/family.h"
#include "proc/process.h"
#include "proc/task.h"
#include "proc/task_stat.h"

struct walk {
	int (*visit)(void *arg, pid_t pid, int dir, const char *number);
	void *arg;
	int proc;	      /* /proc */
	struct u64map seen;   /* processes */
	struct tid_list pids; /* of this round: several threads look at them */
	pthread_mutex_t lock; /* of all that follows */
	bool all;
	int rc;
};

/* What has ended, or was closed, has nothing; of anything else it is not known. */
static void note_error(struct walk *w, int error)
{
	if (error == ENOENT || error == ESRCH)
		return;
	pthread_mutex_lock(&w->lock);
	w->all = false;
	pthread_mutex_unlock(&w->lock);
}

/* How many descriptors there are in these entries of a directory, or -errno. */
static int look_at_entries(struct walk *w, pid_t pid, int dir, const uint8_t *entries, size_t len)
{
	int n = 0, rc;

	for (size_t at = 0; at < len;) {
		const struct dirent64 *entry = (const struct dirent64 *)(entries + at);

		at += entry->d_reclen;
		if (entry->d_name[0] == '.')
			continue;
		rc = w->visit(w->arg, pid, dir, entry->d_name);
		if (rc == -ENOMEM)
			return rc;
		if (rc < 0)
			note_error(w, -rc);
		n++;
	}
	return n;
}

/*
 * The same for all of it. Not by readdir(): it is done for each process of the machine, and one more system call in each of them is a fifth of what
 * it takes.
 */
static int look_at_directory(struct walk *w, pid_t pid, const char *path)
{
	_Alignas(struct dirent64) uint8_t entries[32 << 10];
	_cleanup_close_ int dir = openat(w->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t len = sizeof(entries);
	int n = 0, rc = 0;

	if (dir < 0)
		return -errno;
	while (rc >= 0 && len > 0) {
		len = getdents64(dir, entries, sizeof(entries));
		if (len < 0)
			return -errno;
		rc = look_at_entries(w, pid, dir, entries, (size_t)len);
		n += rc;
	}
	return rc < 0 ? rc : n;
}

/* A main thread that has ended has none any more; the others still have theirs. */
static int look_at_threads(struct walk *w, pid_t pid)
{
	struct tid_list tids = {0};
	struct process process;
	char path[64];
	int rc = process_open(pid, NULL, &process);

	if (rc < 0)
		return rc;
	rc = process_list_tids(&process, &tids);
	process_close(&process);
	for (size_t i = 0; rc == 0 && i < tids.len; i++) {
		int n;

		snprintf(path, sizeof(path), "%d/task/%d/fd", (int)pid, (int)tids.data[i]);
		n = look_at_directory(w, pid, path);
		if (n == -ENOMEM)
			rc = n;
		else if (n < 0 && tids.data[i] != pid) /* which is the one that has ended */
			note_error(w, -n);
	}
	vec_deinit(&tids);
	return rc;
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
	struct walk *w = arg;
	const pid_t pid = w->pids.data[i];
	char path[32];
	int n;

	snprintf(path, sizeof(path), "%d/fd", (int)pid);
	n = look_at_directory(w, pid, path);
	if (n <= 0 && n != -ENOMEM && n != -ENOENT && has_ended(pid))
		n = look_at_threads(w, pid);
	if (n >= 0)
		return;
	note_error(w, -n);
	pthread_mutex_lock(&w->lock);
	w->rc = n == -ENOMEM ? n : w->rc;
	pthread_mutex_unlock(&w->lock);
}

/* Those that are there, but for those that were seen before. */
static int look_at_all(struct walk *w)
{
	size_t kept = 0;
	int rc;

	w->pids.len = 0;
	rc = process_list_all(&w->pids);
	for (size_t i = 0; rc == 0 && i < w->pids.len; i++) {
		bool created;

		if (!u64map_put(&w->seen, (uint64_t)w->pids.data[i], &created))
			rc = -ENOMEM;
		else if (created)
			w->pids.data[kept++] = w->pids.data[i];
	}
	w->pids.len = kept;
	if (rc == 0)
		parallel_for(kept, look_at_process, w);
	return rc < 0 ? rc : w->rc;
}

int descriptor_walk(int (*visit)(void *arg, pid_t pid, int dir, const char *number), void *arg, bool *all)
{
	struct walk w = {.visit = visit, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER, .all = process_sees_all()};
	int rc = 0;

	w.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w.proc < 0)
		rc = -errno;
	if (rc == 0)
		rc = look_at_all(&w);
	if (rc == 0)
		rc = look_at_all(&w); /* who was started meanwhile has what its parent had */
	*all = rc == 0 && w.all;
	cleanup_close(&w.proc);
	u64map_deinit(&w.seen);
	vec_deinit(&w.pids);
	return rc;
}
