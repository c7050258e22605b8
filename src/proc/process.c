/* SPDX-License-Identifier: MIT */
#include "proc/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/user.h"
#include "privilege/remedy.h"
#include "proc/lsm.h"
#include "proc/task.h"
#include "proc/task_stat.h"

ssize_t process_read_arguments(pid_t pid, char *buf, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	return process_read_file(AT_FDCWD, path, buf, size);
}

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

static bool numbers_differ;

/* NSpid lists the pids of a process from the namespace of /proc down to its own: just one if they are the same. */
static void compare_numbers(void)
{
	struct task_status own;
	struct stat st;
	int rc = task_status_read(AT_FDCWD, "/proc/self/status", &own);

	if (rc == -ENOENT)
		numbers_differ = lstat("/proc/self", &st) == 0; /* dangling: /proc has no number for us */
	if (rc == 0)
		numbers_differ = own.nspids > 1;
}

int process_check_numbers(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, compare_numbers);
	return !numbers_differ ? 0
			       : err_set(err, EXDEV, "/proc is of another pid namespace than ours: a pid means one process "
					 "there and another to BPF and ptrace; nsenter needs both -p and -m");
}

/* By opening it: access() would ask for the rights of the user alone. */
bool process_sees_all(void)
{
	_cleanup_close_ int fd = open("/proc/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0;
}

int process_check_mounted(struct err *err)
{
	struct statfs fs;

	if (statfs("/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
		return 0;
	return err_set(err, ENOENT, "/proc is not mounted: processes are found, and files opened, through it; "
		       "`mount -t proc proc /proc` mounts it");
}

bool process_own_program(char *buf, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", buf, size - 1);

	if (len >= 0)
		buf[len] = '\0';
	return len >= 0;
}

pid_t process_self(void)
{
	char number[16] = "";

	return readlink("/proc/self", number, sizeof(number) - 1) < 0 ? 0 : (pid_t)strtol(number, NULL, 10);
}

/* The pidfd is of the same process if that is still there afterwards. */
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

/* Signals tell of processes that /proc may hide. */
static int explain_absence(pid_t pid, struct err *err)
{
	if (process_check_numbers(NULL) == 0 && kill(pid, 0) < 0 && errno == EPERM)
		return err_set(err, ESRCH, "process %d: " HIDEPID_HIDES ": " REMEDY_HIDEPID, (int)pid);
	return err_set(err, ESRCH, "there is no process %d", (int)pid);
}

int process_open(pid_t pid, struct err *err, struct process *out)
{
	_cleanup_close_ int dir = -1;
	struct task_status status;
	char path[32];
	int rc, task;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno == ENOENT)
		return explain_absence(pid, err);
	if (dir < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	rc = task_status_read(dir, "status", &status);
	if (rc == -ENOENT || rc == -ESRCH)
		return err_set(err, ESRCH, "process %d has ended", (int)pid);
	if (rc < 0)
		return err_set(err, -rc, "%s/status: %s", path, strerror(-rc));
	if (status.tgid > 0 && status.tgid != pid) {
		out->pid = status.tgid;
		return err_set(err, EINVAL, "%d is a thread of process %d", (int)pid, (int)status.tgid);
	}
	task = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task < 0)
		return err_set(err, errno, "%s/task: %s", path, strerror(errno));
	*out = (struct process){.pid = pid, .pidfd = -1, .dir_fd = steal_fd(&dir), .task_fd = task, .mm_fd = -1};
	open_pidfd(out);
	process_find_memory(out);
	return 0;
}

int process_status(const struct process *process, struct task_status *out)
{
	return task_status_read(process->dir_fd, "status", out);
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

int process_info(const struct process *process, struct process_info *out)
{
	struct task_stat stat;
	int rc = task_stat_read(process->dir_fd, "stat", &stat);

	if (rc < 0)
		return rc;
	*out = (struct process_info){
		.state = stat.state,
		.kernel_thread = stat.flags & TASK_FLAG_KERNEL_THREAD,
		.start_time = stat.start_time,
	};
	memcpy(out->comm, stat.name, sizeof(out->comm));
	return 0;
}

pid_t process_inner_pid(const struct process *process)
{
	struct task_status status;

	return task_status_read(process->dir_fd, "status", &status) == 0 && status.nspids > 1 ? status.ns_pid : 0;
}

int process_check_id(const struct process *process, struct process_id id, struct err *err)
{
	struct process_info info;

	if (!id.start_time || (process_info(process, &info) == 0 && info.start_time == id.start_time))
		return 0;
	return err_set(err, ESRCH, "process %d has ended", (int)id.pid);
}

/* 1: a thread lives; 0: none does; -EAGAIN: one went away meanwhile, and another may have replaced it. */
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
	enum { MAX_TRIES = 10 }; /* a thread that calls exec gives up its number for the main thread's */
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
	struct task_stat stat;
	char path[48];

	/*
	 * The thread's own file: for that of a process the kernel adds up all threads, which takes a millisecond for
	 * thousands.
	 */
	snprintf(path, sizeof(path), "task/%d/stat", (int)process->mm_tid);
	return task_stat_read(process->mm_fd, path, &stat) < 0 ? 0 : stat.start_stack;
}

int process_count_threads(const struct process *process)
{
	struct stat st;

	if (fstat(process->task_fd, &st) < 0)
		return -errno;
	return (int)st.st_nlink - 2; /* one link for each thread, besides the directory's own two */
}

/*
 * /proc/TID exists for every thread, although it is not listed, and only it has map_files. It is opened by number,
 * which may be another thread's by then: its Tgid tells whose it is, as long as our process keeps that number.
 */
static int open_thread(const struct process *process, pid_t tid)
{
	_cleanup_close_ int fd = -1;
	struct task_status status;
	char path[32];

	if (tid == process->pid)
		return openat(process->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d", (int)tid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || task_status_read(fd, "status", &status) < 0 || status.tgid != process->pid ||
	    !process_has_number(process))
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

ssize_t process_fd_link(const struct process *process, pid_t tid, int fd, char *buf, size_t size)
{
	char path[48];
	ssize_t len;

	snprintf(path, sizeof(path), "%d/fd/%d", (int)tid, fd);
	len = readlinkat(process->task_fd, path, buf, size - 1);
	if (len < 0)
		return -errno;
	buf[len] = '\0';
	return len;
}

static const char *describe_user(uid_t uid, char *buf, size_t size)
{
	static const char word[] = "user ";

	if (user_name(uid, buf + sizeof(word) - 1, size - (sizeof(word) - 1)))
		memcpy(buf, word, sizeof(word) - 1);
	else
		snprintf(buf, size, "uid %u", (unsigned)uid);
	return buf;
}

static bool are_all(const uint32_t *ids, uint32_t id)
{
	return ids[TASK_ID_REAL] == id && ids[TASK_ID_EFFECTIVE] == id && ids[TASK_ID_SAVED] == id;
}

/* In /proc the files of such a process belong to root; its directory still belongs to its user. */
static bool is_undumpable(const struct process *process)
{
	struct stat st;

	return fstatat(process->dir_fd, "status", &st, 0) == 0 && st.st_uid != geteuid();
}

/* What the kernel checks before ptrace_scope, in the same order; false when none of that is in the way. */
static bool find_obstacle(const struct process *process, char *out, size_t size)
{
	struct task_status status, own;
	const uint32_t *uids = status.uids, *gids = status.gids;

	if (task_status_read(process->dir_fd, "status", &status) < 0 ||
	    task_status_read(AT_FDCWD, "/proc/self/status", &own) < 0)
		return false;
	if (!are_all(uids, geteuid()) && are_all(uids, uids[TASK_ID_REAL]))
		snprintf(out, size, "the process belongs to another user");
	else if (!are_all(uids, geteuid()))
		snprintf(out, size, "its user ids (%u, %u, %u) are not all yours (%u)", uids[TASK_ID_REAL],
			 uids[TASK_ID_EFFECTIVE], uids[TASK_ID_SAVED], (unsigned)geteuid());
	else if (!are_all(gids, getegid()))
		snprintf(out, size, "its group ids (%u, %u, %u) are not all yours (%u)", gids[TASK_ID_REAL],
			 gids[TASK_ID_EFFECTIVE], gids[TASK_ID_SAVED], (unsigned)getegid());
	else if (is_undumpable(process))
		snprintf(out, size, "the process made itself unreadable (PR_SET_DUMPABLE), or its program file is not readable");
	else if (status.permitted & ~own.effective)
		snprintf(out, size, "the process has capabilities that stakeout lacks");
	else
		return false;
	return true;
}

static bool is_confined(const struct process *process, char *out, size_t size)
{
	_cleanup_close_ int self = open("/proc/self", O_PATH | O_CLOEXEC);
	struct lsm_label ours, its;

	lsm_read(self, &ours);
	lsm_read(process->dir_fd, &its);
	if (!ours.module)
		return false;
	snprintf(out, size, "%s may be what refuses it: stakeout is confined as %.60s, the process is %.60s", ours.module, ours.name,
		 its.module ? its.name : "not");
	return true;
}

int process_explain_denied(const struct process *process, int code, const char *what, struct err *err)
{
	char owner[64], obstacle[200], help[REMEDY_SIZE];
	struct process_info info;
	struct stat st;
	bool is_found;

	if (fstat(process->dir_fd, &st) < 0 || process_info(process, &info) < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)process->pid);
	is_found = find_obstacle(process, obstacle, sizeof(obstacle)) || is_confined(process, obstacle, sizeof(obstacle));
	return err_set(err, code, "process %d (%s, %s): %s: %s. It takes CAP_SYS_PTRACE, which the host's root has: %s%s%s",
		       (int)process->pid, info.comm, describe_user(st.st_uid, owner, sizeof(owner)), what, strerror(code),
		       remedy(REFUSED_PTRACE, help), is_found ? "; what is in the way: " : "", is_found ? obstacle : "");
}
