/* SPDX-License-Identifier: MIT */
#include "symbol/jit_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "target/rootfile.h"
#include "proc/task_stat.h"
#include "proc/task_status.h"
#include "symbol/source.h"
#include "symbol/source_jitdump.h"
#include "symbol/source_perf_map.h"

enum { MAX_JITDUMPS = 16, CLOCK_SLACK_S = 2 };

struct jit_names {
	struct modules *modules;
	struct snapshot *snap;
	bool opened;
	VEC(struct source) sources; /* the first that knows an address counts */
};

/* The process whose files they are, as /proc/PID/status tells. */
struct owner {
	pid_t pid;    /* in our pid namespace */
	pid_t ns_pid; /* in the process's own, which is what it knows itself by */
	uid_t uid;
	uid_t euid;
	time_t started; /* 0: not known */
};

struct jit_names *jit_names_create(struct modules *modules)
{
	struct jit_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->modules = modules;
	names->snap = modules_snapshot(modules);
	return names;
}

void jit_names_destroy(struct jit_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->sources.len; i++)
		source_deinit(&names->sources.data[i]);
	vec_deinit(&names->sources);
	free(names);
}

/* When the process began, by the wall clock that files have. */
static time_t wall_time(uint64_t ticks)
{
	int64_t boot = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)clock_ns(CLOCK_BOOTTIME);

	return (time_t)(boot / NS_PER_S + (int64_t)(ticks / (uint64_t)sysconf(_SC_CLK_TCK)));
}

/* When the process has ended meanwhile, what it left may still be read by those to whom it need not belong. */
static struct owner read_owner(const struct jit_names *names)
{
	struct owner owner = {.pid = names->snap->pid, .ns_pid = names->snap->pid, .uid = geteuid(), .euid = geteuid()};
	int proc_fd = modules_proc_fd(names->modules);
	struct task_status status;
	struct task_stat stat;

	if (task_status_read(proc_fd, "status", &status) == 0) {
		owner.uid = status.uids[TASK_ID_REAL];
		owner.euid = status.uids[TASK_ID_EFFECTIVE];
		owner.ns_pid = status.nspids ? status.ns_pid : owner.ns_pid;
	}
	if (task_stat_read(proc_fd, "stat", &stat) == 0)
		owner.started = wall_time(stat.start_time);
	return owner;
}

static int check_owner(int fd, const struct owner *owner, struct stat *st, struct err *err)
{
	if (fstat(fd, st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (st->st_uid == 0 || st->st_uid == owner->uid || st->st_uid == owner->euid || st->st_uid == geteuid())
		return 0;
	return err_set(err, EPERM,
		       "it belongs to user %u, who is neither root, nor the owner of the process, nor you; "
		       "if you trust it, change its owner",
		       (unsigned)st->st_uid);
}

static void note_unused(struct jit_names *names, const char *path, const struct err *err)
{
	snapshot_note(names->snap, "names of code made at run time: %s: %s%s", path, err->msg,
		      err->code == EACCES ? "; run as root, or as the file's owner" : "");
}

static bool keep(struct jit_names *names, const struct source_ops *ops, void *data)
{
	struct source source = {.ops = ops, .data = data};

	if (vec_push(&names->sources, source))
		return true;
	source_deinit(&source);
	return false;
}

/* perf-PID.map. Opens it below a root (-1: our own); -ENOENT when there is none. In /tmp anybody can make a link. */
static int open_perf_map(const struct owner *owner, int root_fd, const char *path, struct err *err)
{
	_cleanup_close_ int fd = rootfile_open_itself(root_fd, path);
	struct stat st;
	int ret;

	if (fd == -ELOOP)
		return err_set(err, ELOOP, "it is a symbolic link, and none is followed there");
	if (fd == -EINVAL)
		return err_set(err, EINVAL, "it is not a regular file");
	if (fd < 0)
		return err_set(err, -fd, "%s", strerror(-fd));
	ret = check_owner(fd, owner, &st, err);
	if (ret < 0)
		return ret;
	if (st.st_mtime + CLOCK_SLACK_S < owner->started)
		return err_set(err, ESTALE,
			       "it was last written before the process began: an earlier one with the same "
			       "number left it; remove it");
	return steal_fd(&fd);
}

/* The process names the file by the number that it knows; agents from outside by ours, also in our own /tmp. */
static void open_perf_maps(struct jit_names *names, const struct owner *owner)
{
	const struct {
		int root_fd;
		pid_t pid;
	} places[] = {
		{modules_root_fd(names->modules), owner->ns_pid},
		{modules_root_fd(names->modules), owner->pid},
		{-1, owner->pid},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct perf_map_source *source = NULL;
		struct err err = {0};
		char path[64];
		int fd;

		if (i < 2 && places[i].root_fd < 0)
			continue;
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)places[i].pid);
		fd = open_perf_map(owner, places[i].root_fd, path, &err);
		if (fd >= 0 && perf_map_source_create(fd, &err, &source) == 0)
			keep(names, &perf_map_source_ops, source);
		if (err.code && err.code != ENOENT && err.code != ENOTDIR)
			note_unused(names, path, &err);
		if (source)
			return;
	}
}

/* A compiler maps its jitdump file, executable, for perf to notice it: that tells which file it is. */
static bool is_jitdump(const struct map_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');

	return (entry->perms & MAP_PERM_EXEC) && entry->inode && slash && fnmatch("jit-*.dump", slash + 1, 0) == 0;
}

static void open_jitdump(struct jit_names *names, const struct owner *owner, const struct map_entry *entry)
{
	_cleanup_close_ int fd = -1;
	struct jitdump_source *source = NULL;
	struct err err = {0};
	struct stat st;

	fd = modules_open_mapped(names->modules, entry, &err);
	if (fd >= 0 && check_owner(fd, owner, &st, &err) == 0 &&
	    jitdump_source_create(steal_fd(&fd), &err, &source) == 0)
		keep(names, &jitdump_source_ops, source);
	if (err.code)
		note_unused(names, entry->path, &err);
}

static void open_jitdumps(struct jit_names *names, const struct owner *owner)
{
	const struct maps *maps = &names->snap->maps;
	size_t count = 0;

	for (size_t i = 0; i < maps->len && count < MAX_JITDUMPS; i++) {
		if (!is_jitdump(&maps->data[i]))
			continue;
		open_jitdump(names, owner, &maps->data[i]);
		count++;
	}
}

/* In the order in which they count. A source of another kind is added here. */
static void (*const openers[])(struct jit_names *names, const struct owner *owner) = {
	open_jitdumps, /* it knows lines, too */
	open_perf_maps,
};

static void open_sources(struct jit_names *names)
{
	struct owner owner;

	names->opened = true;
	if (modules_proc_fd(names->modules) < 0)
		return;
	owner = read_owner(names);
	for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++)
		openers[i](names, &owner);
}

bool jit_names_find(struct jit_names *names, uint64_t address, struct calls *out)
{
	out->len = 0;
	if (!names->opened)
		open_sources(names);
	for (size_t i = 0; i < names->sources.len; i++)
		if (source_find(&names->sources.data[i], address, out))
			return true;
	out->len = 0;
	return false;
}
