/* SPDX-License-Identifier: MIT */
#include "proc/relatives.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/family.h"
#include "proc/task_status.h"

/* To look through all processes takes no longer than to ask more threads than this. */
enum { MOST_THREADS = 512 };

int process_glance(pid_t pid, struct task_stat *out)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return task_stat_read(AT_FDCWD, path, out);
}

pid_t process_innermost_number(pid_t pid, unsigned *namespaces)
{
	struct task_status status;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (task_status_read(AT_FDCWD, path, &status) < 0)
		return 0;
	*namespaces = status.nspids;
	return status.ns_pid;
}

/* There may be any number of them, in one line. */
int process_thread_children(const struct process *process, pid_t tid, struct tid_list *out)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[48];
	int fd, pid;

	snprintf(path, sizeof(path), "%d/children", (int)tid);
	fd = openat(process->task_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	while (fscanf(f, "%d", &pid) == 1)
		if (!vec_push(out, (pid_t)pid))
			return -ENOMEM;
	return 0;
}

static bool may_share_memory(pid_t a, pid_t b)
{
	const long order = syscall(SYS_kcmp, a, b, KCMP_VM, 0UL, 0UL);

	return order == 0 || (order < 0 && errno != ESRCH);
}

pid_t process_vforked_child(const struct process *process, pid_t tid, bool compare)
{
	struct tid_list children = {0};
	pid_t found = 0;
	size_t n = 0;

	if (process_thread_children(process, tid, &children) < 0)
		children.len = 0;
	for (size_t i = 0; i < children.len; i++)
		if (!compare || may_share_memory(tid, children.data[i])) {
			found = children.data[i];
			n++;
		}
	vec_deinit(&children);
	return n == 1 ? found : 0;
}

static int search_children(pid_t parent, struct tid_list *out)
{
	struct tid_list all = {0};
	struct task_stat stat;
	int rc = process_list_all(&all);

	for (size_t i = 0; rc == 0 && i < all.len; i++)
		if (process_glance(all.data[i], &stat) == 0 && stat.parent == parent && !vec_push(out, all.data[i]))
			rc = -ENOMEM;
	vec_deinit(&all);
	return rc;
}

int process_children(const struct process *process, struct tid_list *out)
{
	struct tid_list tids = {0};
	const size_t before = out->len;
	bool listed = false;
	int rc = process_list_tids(process, &tids);

	for (size_t i = 0; rc == 0 && tids.len <= MOST_THREADS && i < tids.len; i++) {
		int one = process_thread_children(process, tids.data[i], out);

		listed |= one == 0;
		rc = one == -ENOMEM ? one : 0;
	}
	vec_deinit(&tids);
	if (rc < 0 || listed)
		return rc;
	out->len = before;
	return search_children(process->pid, out);
}

pid_t process_of_pidfd(const struct process *process, pid_t tid, int fd)
{
	char path[48], text[1024];
	const char *line;
	ssize_t len;

	snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)tid, fd);
	len = process_read_file(process->task_fd, path, text, sizeof(text));
	line = len > 0 ? strstr(text, "\nPid:\t") : NULL;
	return line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
}
