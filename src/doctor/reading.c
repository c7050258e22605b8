/* SPDX-License-Identifier: MIT */
/* Whether processes can be read: each door to one, tried on the patient. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "doctor/check.h"

enum { MAX_SETTLE_MS = 200 }; /* until the patient sleeps, on a busy machine */

static int fail(struct err *err, int code)
{
	return err_set(err, code, "%s", strerror(code));
}

static int open_in(const struct patient *patient, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)patient->pid, name);
	return open(path, flags | O_CLOEXEC);
}

/* As a capture holds a thread. */
static int wait_for_stop(pid_t pid, struct err *err)
{
	const uint64_t until = monotonic_ns() + NS_PER_S;
	const struct timespec nap = {.tv_nsec = 100000};
	int status;

	while (monotonic_ns() < until) {
		pid_t got = waitpid(pid, &status, __WALL | WNOHANG);

		if (got < 0)
			return fail(err, errno);
		if (got == pid)
			return WIFSTOPPED(status) ? 0 : err_set(err, ESRCH, "the process has ended");
		nanosleep(&nap, NULL);
	}
	return err_set(err, ETIMEDOUT, "the thread did not stop within a second");
}

static int try_ptrace(struct doctor *doctor, const char **how, struct err *err)
{
	pid_t pid = doctor->patient.pid;
	int rc;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return fail(err, errno);
	rc = ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 ? fail(err, errno) : wait_for_stop(pid, err);
	if (ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 && rc == 0)
		rc = fail(err, errno);
	return rc;
}

static int check_word(uint64_t word, ssize_t len, struct err *err)
{
	if (len < 0)
		return fail(err, errno);
	if (len != sizeof(word) || word != patient_word)
		return err_set(err, EIO, "what was read is not what is there");
	return 0;
}

static int try_vm_read(struct doctor *doctor, const char **how, struct err *err)
{
	uint64_t word = 0;
	struct iovec to = {.iov_base = &word, .iov_len = sizeof(word)};
	struct iovec from = {.iov_base = (void *)(uintptr_t)&patient_word, .iov_len = sizeof(word)};
	ssize_t len = process_vm_readv(doctor->patient.pid, &to, 1, &from, 1, 0);

	return check_word(word, len, err);
}

static int try_mem(struct doctor *doctor, const char **how, struct err *err)
{
	_cleanup_close_ int fd = open_in(&doctor->patient, "mem", O_RDONLY);
	uint64_t word = 0;
	ssize_t len = fd < 0 ? -1 : pread(fd, &word, sizeof(word), (off_t)(uintptr_t)&patient_word);

	return check_word(word, len, err);
}

static int try_map_files(struct doctor *doctor, const char **how, struct err *err)
{
	_cleanup_close_ int dir = open_in(&doctor->patient, "map_files", O_RDONLY | O_DIRECTORY);
	_cleanup_closedir_ DIR *list = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *entry;

	if (!list)
		return fail(err, errno);
	dir = -1;
	while ((entry = readdir(list))) {
		_cleanup_close_ int fd = entry->d_name[0] == '.' ? -1 : openat(dirfd(list), entry->d_name, O_RDONLY | O_CLOEXEC);

		if (entry->d_name[0] != '.')
			return fd < 0 ? fail(err, errno) : 0;
	}
	return err_set(err, ENOENT, "the directory is empty");
}

static int try_text(const struct patient *patient, const char *name, struct err *err)
{
	_cleanup_close_ int fd = open_in(patient, name, O_RDONLY);
	char text[256];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (len < 0)
		return fail(err, errno);
	return len ? 0 : err_set(err, ENODATA, "the file is empty");
}

static int try_syscall(struct doctor *doctor, const char **how, struct err *err)
{
	return try_text(&doctor->patient, "syscall", err);
}

/* Of a thread that is on a CPU just now the kernel tells nothing: the patient may be on its way to sleep. */
static int try_stack(struct doctor *doctor, const char **how, struct err *err)
{
	int rc = try_text(&doctor->patient, "stack", err);

	for (unsigned i = 0; rc == -ENODATA && i < MAX_SETTLE_MS; i++) {
		poll(NULL, 0, 1);
		rc = try_text(&doctor->patient, "stack", err);
	}
	return rc;
}

/* Signals tell of processes that /proc may hide. */
static int try_list(struct doctor *doctor, const char **how, struct err *err)
{
	struct stat st;

	if (kill(1, 0) < 0 && errno == ESRCH)
		return 0;
	if (stat("/proc/1", &st) == 0)
		return 0;
	return err_set(err, ENOENT, HIDEPID_HIDES);
}

static const char *remedy_list(struct doctor *doctor, int code)
{
	return REMEDY_HIDEPID;
}

static const char group[] = "reading processes";

static const struct check list[] = {
	{
		.group = group,
		.name = "proc",
		.about = "processes of all users are listed in /proc",
		.costs = "processes of other users cannot be found by name or number",
		.attempt = try_list,
		.remedy = remedy_list,
	},
	{
		.group = group,
		.name = "process_vm_readv",
		.about = "memory is read at once (process_vm_readv)",
		.costs = "without it and /proc/PID/mem there are no user stacks",
		.attempt = try_vm_read,
		.refused = REFUSED_PTRACE,
		.syscall = "process_vm_readv",
		.better = "mem",
	},
	{
		.group = group,
		.name = "mem",
		.about = "memory is read through /proc/PID/mem",
		.costs = "without it and process_vm_readv there are no user stacks",
		.attempt = try_mem,
		.refused = REFUSED_PTRACE,
	},
	{
		.group = group,
		.name = "ptrace",
		.about = "running threads are stopped for microseconds, where their CPUs cannot be taken (ptrace)",
		.costs = "threads that run are shown without a stack; those that sleep need no ptrace",
		.attempt = try_ptrace,
		.refused = REFUSED_PTRACE,
		.syscall = "ptrace",
	},
	{
		.group = group,
		.name = "syscall",
		.about = "system calls and registers of sleeping threads (/proc/PID/syscall)",
		.costs = "without it and BPF sleeping threads have to be held, too",
		.attempt = try_syscall,
		.refused = REFUSED_PTRACE,
		.better = "snapshot_bpf",
	},
	{
		.group = group,
		.name = "stack",
		.about = "kernel stacks as text (/proc/PID/stack)",
		.costs = "without it and BPF there are no kernel stacks",
		.attempt = try_stack,
		.refused = REFUSED_KERNEL_STACK,
		.better = "snapshot_bpf",
	},
	{
		.group = group,
		.name = "map_files",
		.about = "files that were deleted or replaced while in use (/proc/PID/map_files)",
		.costs = "code of a program whose package was upgraded underneath has no names, and its stacks may end there",
		.attempt = try_map_files,
		.refused = REFUSED_MAP_FILES,
	},
};

const struct checks reading_checks = {list, sizeof(list) / sizeof(list[0])};
