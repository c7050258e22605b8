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

/* The last number of the line NSpid is that of the innermost namespace. */
static void parse_status(const char *status, struct owner *out)
{
	const char *uid = strstr(status, "\nUid:"), *ns = strstr(status, "\nNSpid:");
	unsigned real, effective;
	char *end;

	if (uid && sscanf(uid + strlen("\nUid:"), "%u %u", &real, &effective) == 2) {
		out->uid = real;
		out->euid = effective;
	}
	if (!ns)
		return;
	for (const char *p = ns + strlen("\nNSpid:"); *p && *p != '\n'; p = end) {
		long number = strtol(p, &end, 10);

		if (end == p)
			break;
		out->ns_pid = (pid_t)number;
		end += strspn(end, " \t");
	}
}

/* When the process began, by the wall clock that files have. */
static time_t parse_start(const char *stat)
{
	const char *p = strrchr(stat, ')'); /* the name may hold anything */
	unsigned long long ticks;
	int64_t boot = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)clock_ns(CLOCK_BOOTTIME);

	for (unsigned field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%llu", &ticks) != 1)
		return 0;
	return (time_t)(boot / NS_PER_S + (int64_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK)));
}

/* When the process has ended meanwhile, what it left may still be read by those to whom it need not belong. */
static struct owner read_owner(const struct target *target)
{
	struct owner owner = {.pid = target->process.pid, .ns_pid = target->process.pid, .uid = geteuid(), .euid = geteuid()};
	char text[8192];

	if (process_read_file(target->process.dir_fd, "status", text, sizeof(text)) > 0)
		parse_status(text, &owner);
	if (process_read_file(target->process.dir_fd, "stat", text, sizeof(text)) > 0)
		owner.started = parse_start(text);
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

/* perf-PID.map. Opens it below a root (-1: our own); -ENOENT when there is none. */
static int open_perf_map(const struct owner *owner, int root_fd, const char *path, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = rootfile_open(root_fd, path, &st);
	int ret;

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
		if (err.code == ENOENT || err.code == ENOTDIR)
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
	owner = read_owner(target);
	visit_jitdumps(target, &owner, fn, arg);
	visit_perf_maps(target, &owner, fn, arg);
}
