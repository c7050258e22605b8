/* SPDX-License-Identifier: MIT */
#include "proc/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { PF_KTHREAD = 0x00200000 };

ssize_t process_read_file(int fd, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int file = openat(fd, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (file < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t n = read(file, buf + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}

/* The value of "Key:\tN" in a status file, or -1. */
static long status_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? strtol(line + strlen(key), NULL, 10) : -1;
}

int process_open(pid_t pid, struct err *err, struct process *out)
{
	char path[32], status[4096];
	_cleanup_close_ int dir = -1;
	long tgid;
	int task;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno == ENOENT)
		return err_set(err, ESRCH, "there is no process %d", (int)pid);
	if (dir < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (process_read_file(dir, "status", status, sizeof(status)) < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)pid);
	tgid = status_number(status, "\nTgid:");
	if (tgid > 0 && tgid != pid)
		return err_set(err, EINVAL, "%d is a thread of process %ld: use `stakeout %ld -t %d`", (int)pid, tgid, tgid,
			       (int)pid);
	task = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task < 0)
		return err_set(err, errno, "%s/task: %s", path, strerror(errno));
	*out = (struct process){.pid = pid, .dir_fd = steal_fd(&dir), .task_fd = task};
	return 0;
}

void process_close(struct process *process)
{
	cleanup_close(&process->dir_fd);
	cleanup_close(&process->task_fd);
	process->dir_fd = process->task_fd = -1;
}

static void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

int process_list_tids(const struct process *process, struct tid_list *out)
{
	/* A second description of the same directory: closedir() closes it, and the offset is its own. */
	_cleanup_close_ int fd = openat(process->task_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(cleanup_closedir) DIR *dir = NULL;
	struct dirent *entry;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	steal_fd(&fd);
	out->len = 0;
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid > 0 && !vec_push(out, tid))
			return -ENOMEM;
	}
	return out->len ? 0 : -ESRCH;
}

int process_info(const struct process *process, struct process_info *out)
{
	char buf[1024], *open_paren, *close_paren, *save = NULL;
	ssize_t len = process_read_file(process->dir_fd, "stat", buf, sizeof(buf));
	size_t comm_len;
	int field = 3;

	if (len < 0)
		return (int)len;
	*out = (struct process_info){0};
	/* The name may contain anything, also ") R": the last parenthesis ends it. */
	open_paren = strchr(buf, '(');
	close_paren = strrchr(buf, ')');
	if (!open_paren || !close_paren || close_paren < open_paren)
		return -EINVAL;
	comm_len = (size_t)(close_paren - open_paren - 1);
	if (comm_len >= sizeof(out->comm))
		comm_len = sizeof(out->comm) - 1;
	memcpy(out->comm, open_paren + 1, comm_len);
	for (char *word = strtok_r(close_paren + 1, " ", &save); word; word = strtok_r(NULL, " ", &save), field++) {
		if (field == 3)
			out->state = word[0];
		else if (field == 9)
			out->kernel_thread = strtoul(word, NULL, 10) & PF_KTHREAD;
		else if (field == 22)
			out->start_time = strtoull(word, NULL, 10);
		else if (field == 28)
			out->start_stack = strtoull(word, NULL, 10);
	}
	return field > 28 ? 0 : -EINVAL;
}

const char *process_exe(const struct process *process, struct arena *arena)
{
	static const char deleted[] = " (deleted)";
	char buf[4096];
	ssize_t len = readlinkat(process->dir_fd, "exe", buf, sizeof(buf));
	size_t n;

	if (len <= 0)
		return NULL;
	n = (size_t)len;
	if (n > sizeof(deleted) - 1 && memcmp(buf + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		n -= sizeof(deleted) - 1;
	return arena_intern_n(arena, buf, n);
}

static const char *user_name(uid_t uid, char *buf, size_t size)
{
	struct passwd *pw = getpwuid(uid);

	if (pw)
		snprintf(buf, size, "user %s", pw->pw_name);
	else
		snprintf(buf, size, "uid %u", (unsigned)uid);
	return buf;
}

int process_explain_denied(const struct process *process, int code, const char *what, struct err *err)
{
	char owner[64], scope_text[8] = "", hint[160] = "";
	struct process_info info;
	struct stat st;
	int scope = 0;

	if (fstat(process->dir_fd, &st) < 0 || process_info(process, &info) < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)process->pid);
	if (process_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", scope_text, sizeof(scope_text)) > 0)
		scope = atoi(scope_text);
	if (scope > 0)
		snprintf(hint, sizeof(hint), "; it is %d now: `sysctl kernel.yama.ptrace_scope=0` lets you read your own processes",
			 scope);
	else if (st.st_uid == geteuid())
		snprintf(hint, sizeof(hint), "; that is not the obstacle here: the process made itself unreadable (PR_SET_DUMPABLE, "
					     "or it runs with privileges of its own)");
	else
		snprintf(hint, sizeof(hint), "; that is not the obstacle here: the process is another user's");
	return err_set(err, code,
		       "process %d (%s, %s): %s: %s. To be allowed, (1) run as root, (2) give stakeout CAP_SYS_PTRACE, or "
		       "(3) for your own processes set kernel.yama.ptrace_scope to 0%s",
		       (int)process->pid, info.comm, user_name(st.st_uid, owner, sizeof(owner)), what, strerror(code), hint);
}
