/* SPDX-License-Identifier: MIT */
#include "proc/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "proc/task.h"

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

static bool numbers_differ;

/* NSpid tells the numbers of a process from the namespace of /proc down to its own: one, where these are the same. */
static void compare_numbers(void)
{
	char status[4096];
	ssize_t len = process_read_file(AT_FDCWD, "/proc/self/status", status, sizeof(status));
	const char *numbers = len > 0 ? strstr(status, "\nNSpid:") : NULL;
	struct stat st;
	char *rest;

	if (len == -ENOENT)
		numbers_differ = lstat("/proc/self", &st) == 0; /* it leads nowhere: we have no number there */
	if (!numbers)
		return;
	strtol(numbers + strlen("\nNSpid:"), &rest, 10);
	numbers_differ = *rest == '\t';
}

int process_check_numbers(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, compare_numbers);
	return !numbers_differ ? 0
			       : err_set(err, EXDEV, "/proc is of another pid namespace than ours, and a number means another "
					 "process there than to BPF and ptrace; nsenter needs both -p and -m");
}

pid_t process_self(void)
{
	char number[16] = "";

	return readlink("/proc/self", number, sizeof(number) - 1) < 0 ? 0 : (pid_t)strtol(number, NULL, 10);
}

/* It is of the same process if that is still there afterwards. */
static void open_pidfd(struct process *process)
{
	struct stat st;

	if (process_check_numbers(NULL) < 0)
		return;
	process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (process->pidfd >= 0 && fstatat(process->dir_fd, "stat", &st, 0) < 0) {
		close(process->pidfd);
		process->pidfd = -1;
	}
}

int process_open(pid_t pid, struct err *err, struct process *out)
{
	char path[32], status[4096];
	_cleanup_close_ int dir = -1;
	ssize_t len;
	long tgid;
	int task;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno == ENOENT)
		return err_set(err, ESRCH, "there is no process %d", (int)pid);
	if (dir < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	len = process_read_file(dir, "status", status, sizeof(status));
	if (len == -ENOENT || len == -ESRCH)
		return err_set(err, ESRCH, "process %d has ended", (int)pid);
	if (len < 0)
		return err_set(err, (int)-len, "%s/status: %s", path, strerror((int)-len));
	tgid = status_number(status, "\nTgid:");
	if (tgid > 0 && tgid != pid) {
		out->pid = (pid_t)tgid;
		return err_set(err, EINVAL, "%d is a thread of process %ld", (int)pid, tgid);
	}
	task = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task < 0)
		return err_set(err, errno, "%s/task: %s", path, strerror(errno));
	*out = (struct process){.pid = pid, .pidfd = -1, .dir_fd = steal_fd(&dir), .task_fd = task, .mm_fd = -1};
	open_pidfd(out);
	process_find_memory(out);
	return 0;
}

int process_dup(const struct process *process, struct err *err, struct process *out)
{
	*out = (struct process){
		.pid = process->pid,
		.pidfd = process->pidfd < 0 ? -1 : fcntl(process->pidfd, F_DUPFD_CLOEXEC, 0),
		.dir_fd = fcntl(process->dir_fd, F_DUPFD_CLOEXEC, 0),
		.task_fd = fcntl(process->task_fd, F_DUPFD_CLOEXEC, 0),
		.mm_fd = -1,
	};
	if (out->dir_fd < 0 || out->task_fd < 0) {
		process_close(out);
		return err_set(err, EMFILE, "too many open files");
	}
	process_find_memory(out);
	return 0;
}

bool process_has_number(const struct process *process)
{
	struct stat st;

	if (process->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, process->pidfd, 0, NULL, 0) == 0 || errno != ESRCH;
	return fstatat(process->dir_fd, "stat", &st, 0) == 0;
}

pid_t process_of_thread(pid_t tid)
{
	struct process process = {0};
	int rc = process_open(tid, NULL, &process);

	if (rc == 0)
		process_close(&process);
	return rc == 0 || rc == -EINVAL ? process.pid : 0;
}

void process_close(struct process *process)
{
	cleanup_close(&process->pidfd);
	cleanup_close(&process->dir_fd);
	cleanup_close(&process->task_fd);
	cleanup_close(&process->mm_fd);
	process->pidfd = process->dir_fd = process->task_fd = process->mm_fd = -1;
}

int process_list_tids(const struct process *process, struct tid_list *out)
{
	/* A second description of the same directory: closedir() closes it, and the offset is its own. */
	_cleanup_close_ int fd = openat(process->task_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = NULL;
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

/* The words of a stat file after the name; the name may contain anything, also ") R": the last parenthesis ends it. */
static char *stat_fields(char *stat, char *comm, size_t size)
{
	char *open_paren = strchr(stat, '('), *close_paren = strrchr(stat, ')');

	if (!open_paren || !close_paren || close_paren < open_paren)
		return NULL;
	if (comm)
		snprintf(comm, size, "%.*s", (int)(close_paren - open_paren - 1), open_paren + 1);
	return close_paren + 1;
}

/* Field `number` of the file, counted from 1 as proc(5) does; at least 3. NULL when there are fewer. */
static const char *stat_field(const char *fields, int number)
{
	for (int at = 3; fields; at++) {
		fields += strspn(fields, " ");
		if (at == number)
			return *fields ? fields : NULL;
		fields = strchr(fields, ' ');
	}
	return NULL;
}

int process_info(const struct process *process, struct process_info *out)
{
	char buf[1024];
	ssize_t len = process_read_file(process->dir_fd, "stat", buf, sizeof(buf));
	const char *fields, *state, *flags, *start;

	if (len < 0)
		return (int)len;
	*out = (struct process_info){0};
	fields = stat_fields(buf, out->comm, sizeof(out->comm));
	state = stat_field(fields, 3);
	flags = stat_field(fields, 9);
	start = stat_field(fields, 22);
	if (!state || !flags || !start)
		return -EINVAL;
	out->state = state[0];
	out->kernel_thread = strtoul(flags, NULL, 10) & PF_KTHREAD;
	out->start_time = strtoull(start, NULL, 10);
	return 0;
}

/* 1: one lives; 0: none does; -EAGAIN: one went away meanwhile, and another may have come for it. */
static int find_living(const struct process *process, const struct tid_list *tids)
{
	int rc = 0;
	char state;

	for (size_t i = 0; i < tids->len; i++) {
		if (task_state(process, tids->data[i], &state) < 0)
			rc = -EAGAIN;
		else if (!state_is_dead(state))
			return 1;
	}
	return rc;
}

bool process_has_ended(const struct process *process)
{
	enum { MAX_TRIES = 10 }; /* a thread that executes a program takes the main thread's number, and has had another */
	struct tid_list tids = {0};
	int rc = -EAGAIN;

	for (int i = 0; rc == -EAGAIN && i < MAX_TRIES; i++) {
		rc = process_list_tids(process, &tids);
		if (rc == 0)
			rc = find_living(process, &tids);
	}
	vec_deinit(&tids);
	return rc == 0 || rc == -ESRCH || rc == -ENOENT;
}

bool process_lives(pid_t pid)
{
	struct process process;
	bool ended;

	if (process_open(pid, NULL, &process) < 0)
		return false;
	ended = process_has_ended(&process);
	process_close(&process);
	return !ended;
}

uint64_t process_generation(const struct process *process)
{
	char buf[1024];
	const char *start_stack;

	if (process_read_file(process->mm_fd, "stat", buf, sizeof(buf)) < 0)
		return 0;
	start_stack = stat_field(stat_fields(buf, NULL, 0), 28);
	return start_stack ? strtoull(start_stack, NULL, 10) : 0;
}

int process_count_threads(const struct process *process)
{
	struct stat st;

	if (fstat(process->task_fd, &st) < 0)
		return -errno;
	return (int)st.st_nlink - 2; /* one link for each thread, beside the directory's own two */
}

/*
 * /proc/TID is there for every thread, though it is not listed, and it alone has map_files. It is opened by number, which
 * may be another's by then: whose it is tells its own Tgid, as long as our process keeps that number.
 */
static int open_thread(const struct process *process, pid_t tid)
{
	char path[32], status[4096];
	_cleanup_close_ int fd = -1;

	if (tid == process->pid)
		return openat(process->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d", (int)tid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || process_read_file(fd, "status", status, sizeof(status)) < 0 ||
	    status_number(status, "\nTgid:") != process->pid || !process_has_number(process))
		return -1;
	return steal_fd(&fd);
}

/* -1 when the thread has no address space. */
static int open_with_memory(const struct process *process, pid_t tid)
{
	_cleanup_close_ int fd = open_thread(process, tid);
	char first[2];

	if (fd < 0 || process_read_file(fd, "statm", first, sizeof(first)) <= 0 || first[0] == '0')
		return -1;
	return steal_fd(&fd);
}

void process_find_memory(struct process *process)
{
	struct tid_list tids = {0};
	int fd = open_with_memory(process, process->pid);

	process->mm_tid = process->pid;
	if (fd < 0 && process_list_tids(process, &tids) == 0)
		for (size_t i = 0; fd < 0 && i < tids.len; i++) {
			fd = open_with_memory(process, tids.data[i]);
			if (fd >= 0)
				process->mm_tid = tids.data[i];
		}
	vec_deinit(&tids);
	if (fd < 0) /* a kernel thread, or all have ended */
		fd = openat(process->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close(&process->mm_fd);
	process->mm_fd = fd;
}

const char *process_exe(const struct process *process, struct arena *arena)
{
	static const char deleted[] = " (deleted)";
	char buf[4096];
	ssize_t len = readlinkat(process->mm_fd, "exe", buf, sizeof(buf));
	size_t n;

	if (len <= 0)
		return NULL;
	n = (size_t)len;
	if (n > sizeof(deleted) - 1 && memcmp(buf + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		n -= sizeof(deleted) - 1;
	return arena_intern_n(arena, buf, n);
}

bool process_may_have_userfaults(const struct process *process)
{
	enum { MAX_FILES = 1024 }; /* a millisecond */
	static const char wanted[] = "anon_inode:[userfaultfd]";
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char link[sizeof(wanted)];
	int fd = openat(process->mm_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned n = 0;

	if (fd < 0)
		return true;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return true;
	}
	while ((entry = readdir(dir))) {
		ssize_t len = readlinkat(fd, entry->d_name, link, sizeof(link));

		if (++n > MAX_FILES || (len == (ssize_t)strlen(wanted) && memcmp(link, wanted, strlen(wanted)) == 0))
			return true;
	}
	return false;
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

enum { REAL, EFFECTIVE, SAVED, IDS };

/* The ids of a status file by "\nUid:" or "\nGid:"; false when it has none. */
static bool status_ids(const char *status, const char *key, unsigned long *ids)
{
	const char *at = strstr(status, key);
	char *end;

	if (!at)
		return false;
	at += strlen(key);
	for (int i = 0; i < IDS; i++, at = end)
		ids[i] = strtoul(at, &end, 10);
	return true;
}

static bool are_all(const unsigned long *ids, unsigned long id)
{
	return ids[REAL] == id && ids[EFFECTIVE] == id && ids[SAVED] == id;
}

static uint64_t status_capabilities(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? strtoull(line + strlen(key), NULL, 16) : 0;
}

/* /proc gives the files of such a process to root; its directory remains its user's. */
static bool is_undumpable(const struct process *process)
{
	struct stat st;

	return fstatat(process->dir_fd, "status", &st, 0) == 0 && st.st_uid != geteuid();
}

/* What the kernel asks before it asks for ptrace_scope, in its order; false when nothing of that is in the way. */
static bool find_obstacle(const struct process *process, char *out, size_t size)
{
	char status[4096], own[4096];
	unsigned long ids[IDS];

	if (process_read_file(process->dir_fd, "status", status, sizeof(status)) < 0 ||
	    process_read_file(AT_FDCWD, "/proc/self/status", own, sizeof(own)) < 0)
		return false;
	if (status_ids(status, "\nUid:", ids) && !are_all(ids, geteuid()) && are_all(ids, ids[REAL]))
		snprintf(out, size, "the process is another user's");
	else if (status_ids(status, "\nUid:", ids) && !are_all(ids, geteuid()))
		snprintf(out, size, "its user ids (%lu, %lu, %lu) are not all yours (%lu)", ids[REAL], ids[EFFECTIVE],
			 ids[SAVED], (unsigned long)geteuid());
	else if (status_ids(status, "\nGid:", ids) && !are_all(ids, getegid()))
		snprintf(out, size, "its group ids (%lu, %lu, %lu) are not all yours (%lu)", ids[REAL], ids[EFFECTIVE],
			 ids[SAVED], (unsigned long)getegid());
	else if (is_undumpable(process))
		snprintf(out, size, "the process made itself unreadable (PR_SET_DUMPABLE), or its program file is not readable");
	else if (status_capabilities(status, "\nCapPrm:") & ~status_capabilities(own, "\nCapEff:"))
		snprintf(out, size, "the process has capabilities that stakeout lacks");
	else
		return false;
	return true;
}

int process_explain_denied(const struct process *process, int code, const char *what, struct err *err)
{
	char owner[64], scope_text[8] = "", obstacle[120], hint[160] = "";
	struct process_info info;
	struct stat st;
	int scope = 0;

	if (fstat(process->dir_fd, &st) < 0 || process_info(process, &info) < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)process->pid);
	if (process_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", scope_text, sizeof(scope_text)) > 0)
		scope = atoi(scope_text);
	if (find_obstacle(process, obstacle, sizeof(obstacle)))
		snprintf(hint, sizeof(hint), "; that is not the obstacle here: %s", obstacle);
	else if (scope > 0)
		snprintf(hint, sizeof(hint), "; it is %d now: `sysctl kernel.yama.ptrace_scope=0` lets you read your own processes",
			 scope);
	else
		snprintf(hint, sizeof(hint), "; that is not the obstacle here: another user namespace may be, or a security module");
	return err_set(err, code,
		       "process %d (%s, %s): %s: %s. To be allowed, (1) run as root, (2) give stakeout CAP_SYS_PTRACE, or "
		       "(3) for your own processes set kernel.yama.ptrace_scope to 0%s",
		       (int)process->pid, info.comm, user_name(st.st_uid, owner, sizeof(owner)), what, strerror(code), hint);
}
