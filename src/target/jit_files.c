/* SPDX-License-Identifier: MIT */
#include "target/jit_files.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "privilege/broker.h"
#include "proc/task_stat.h"
#include "proc/task_status.h"
#include "target/file_errands.h"
#include "target/mapped_file.h"
#include "target/rootfile.h"
#include "target/target.h"

enum { MAX_JITDUMPS = 16, CLOCK_SLACK_S = 2 };

/* The process whose files they are, as /proc/PID/status tells. */
struct owner {
	pid_t pid;    /* in our pid namespace */
	pid_t ns_pid; /* in the process's own, which is what it knows itself by */
	uid_t uid;
	uid_t euid;
	time_t started; /* 0: not known */
};

/* When the process began, by the wall clock that files have. */
static time_t wall_time(uint64_t ticks)
{
	int64_t boot = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)clock_ns(CLOCK_BOOTTIME);

	return (time_t)(boot / NS_PER_S + (int64_t)(ticks / (uint64_t)sysconf(_SC_CLK_TCK)));
}

/* When the process has ended meanwhile, what it left may still be read by those to whom it need not belong. */
static struct owner read_owner(const struct target *target)
{
	pid_t pid = target->process.pid;
	struct owner owner = {.pid = pid, .ns_pid = pid, .uid = geteuid(), .euid = geteuid()};
	struct task_status status;
	struct task_stat stat;

	if (task_status_read(target->process.dir_fd, "status", &status) == 0) {
		owner.uid = status.uids[TASK_ID_REAL];
		owner.euid = status.uids[TASK_ID_EFFECTIVE];
		owner.ns_pid = status.nspids ? status.ns_pid : owner.ns_pid;
	}
	if (task_stat_read(target->process.dir_fd, "stat", &stat) == 0)
		owner.started = wall_time(stat.start_time);
	return owner;
}

static int check_owner(const struct stat *st, const struct owner *owner, struct err *err)
{
	if (st->st_uid == 0 || st->st_uid == owner->uid || st->st_uid == owner->euid || st->st_uid == geteuid())
		return 0;
	return err_set(err, EPERM,
		       "it belongs to user %u, who is neither root, nor the owner of the process, nor you; "
		       "if you trust it, change its owner",
		       (unsigned)st->st_uid);
}

/* perf-PID.map. Opens it below a root (-1: our own); -ENOENT when there is none. In /tmp anybody can make a link. */
static int open_perf_map(const struct owner *owner, int root_fd, const char *path, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = rootfile_open_itself(root_fd, path, &st);
	int ret;

	if (fd == -ELOOP)
		return err_set(err, ELOOP, "it is a symbolic link, and none is followed there");
	if (fd == -EINVAL)
		return err_set(err, EINVAL, "it is not a regular file");
	if (fd < 0)
		return err_set(err, -fd, "%s", strerror(-fd));
	ret = check_owner(&st, owner, err);
	if (ret < 0)
		return ret;
	if (st.st_mtime + CLOCK_SLACK_S < owner->started)
		return err_set(err, ESTALE,
			       "it was last written before the process began: an earlier one with the same "
			       "number left it; remove it");
	return steal_fd(&fd);
}

/* The process names the file by the number that it knows; agents from outside by ours, also in our own /tmp. */
static void visit_perf_maps(const struct target *target, const struct owner *owner, jit_file_fn fn, void *arg)
{
	const struct {
		int root_fd;
		pid_t pid;
	} places[] = {
		{target->root_fd, owner->ns_pid},
		{target->root_fd, owner->pid},
		{-1, owner->pid},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct jit_file file = {.kind = JIT_FILE_PERF_MAP, .fd = -1};
		struct err err = {0};
		char path[64];

		if (i < 2 && places[i].root_fd < 0)
			continue;
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)places[i].pid);
		file.fd = open_perf_map(owner, places[i].root_fd, path, &err);
		if (err.code == ENOENT || err.code == ENOTDIR || err.code == ESRCH) /* a sandbox in a dead process's /proc */
			continue;
		file.path = path;
		file.problem = &err;
		if (fn(arg, &file))
			return;
	}
}

/* A compiler maps its jitdump file, executable, for perf to notice it: that tells which file it is. */
static bool is_jitdump(const struct map_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');

	return (entry->perms & MAP_PERM_EXEC) && entry->inode && slash && fnmatch("jit-*.dump", slash + 1, 0) == 0;
}

static int open_jitdump(const struct target *target, const struct owner *owner, const struct map_entry *entry,
			struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = mapped_file_open(target, entry, false, err, &st);
	int ret = fd < 0 ? fd : check_owner(&st, owner, err);

	return ret < 0 ? ret : steal_fd(&fd);
}

static void visit_jitdumps(const struct target *target, const struct owner *owner, jit_file_fn fn, void *arg)
{
	const struct maps *maps = &target->snap->maps;
	size_t count = 0;

	for (size_t i = 0; i < maps->len && count < MAX_JITDUMPS; i++) {
		struct jit_file file = {.kind = JIT_FILE_DUMP, .path = maps->data[i].path};
		struct err err = {0};

		if (!is_jitdump(&maps->data[i]))
			continue;
		count++;
		file.fd = open_jitdump(target, owner, &maps->data[i], &err);
		file.problem = &err;
		if (fn(arg, &file))
			return;
	}
}

void jit_files_visit(const struct target *target, jit_file_fn fn, void *arg)
{
	struct owner owner;

	if (!target_is_live(target))
		return;
	if (broker_is_there()) {
		file_errand_visit_jit(target, fn, arg);
		return;
	}
	owner = read_owner(target);
	visit_jitdumps(target, &owner, fn, arg);
	visit_perf_maps(target, &owner, fn, arg);
}
