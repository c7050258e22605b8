/* SPDX-License-Identifier: MIT */
#include "proc/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/task_stat.h"

static ssize_t read_task_file(const struct process *process, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", (int)tid, name);
	return process_read_file(process->task_fd, path, buf, size);
}

int task_status(const struct process *process, pid_t tid, struct task_status *out)
{
	char path[48];
	int rc;

	snprintf(path, sizeof(path), "%d/status", (int)tid);
	rc = task_status_read(process->task_fd, path, out);
	return rc == 0 && !out->has_switches ? -ESRCH : rc; /* without them we could not tell that it has run */
}

int task_runs(const struct process *process, pid_t tid, uint64_t *out, uint64_t *cpu_ns)
{
	char buf[128];
	ssize_t len = read_task_file(process, tid, "schedstat", buf, sizeof(buf));
	uint64_t ran;

	if (len < 0)
		return (int)len;
	if (sscanf(buf, "%" SCNu64 " %*u %" SCNu64, &ran, out) != 2)
		return -EINVAL;
	if (cpu_ns)
		*cpu_ns = ran;
	return 0;
}

static int read_stat(const struct process *process, pid_t tid, struct task_stat *out)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/stat", (int)tid);
	return task_stat_read(process->task_fd, path, out);
}

int task_state(const struct process *process, pid_t tid, char *out)
{
	struct task_stat stat;

	if (read_stat(process, tid, &stat) < 0)
		return -ESRCH;
	*out = stat.state;
	return 0;
}

int task_start(const struct process *process, pid_t tid, uint64_t *out)
{
	struct task_stat stat;

	if (read_stat(process, tid, &stat) < 0)
		return -ESRCH;
	*out = stat.start_time;
	return 0;
}

int task_cpu(const struct process *process, pid_t tid)
{
	struct task_stat stat;

	return read_stat(process, tid, &stat) == 0 && stat.state == 'R' ? stat.cpu : -1;
}

bool task_is_kernel_worker(const struct process *process, pid_t tid)
{
	struct task_stat stat;

	return read_stat(process, tid, &stat) == 0 && stat.flags & TASK_FLAG_IO_WORKER;
}

int task_syscall(const struct process *process, pid_t tid, struct task_syscall *out)
{
	char buf[256];
	ssize_t len = read_task_file(process, tid, "syscall", buf, sizeof(buf));

	if (len < 0)
		return (int)len;
	*out = (struct task_syscall){.nr = -1};
	if (strncmp(buf, "running", 7) == 0) {
		out->running = true;
		return 0;
	}
	if (sscanf(buf, "-1 %" SCNx64 " %" SCNx64, &out->sp, &out->pc) == 2)
		return 0;
	if (sscanf(buf, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		   &out->nr, &out->args[0], &out->args[1], &out->args[2], &out->args[3], &out->args[4], &out->args[5], &out->sp,
		   &out->pc) != 9)
		return -EINVAL;
	out->in_syscall = true;
	return 0;
}

int task_kernel_stack(const struct process *process, pid_t tid, struct arena *arena, const char **out, unsigned max)
{
	char buf[16 * 1024], *save = NULL;
	ssize_t len = read_task_file(process, tid, "stack", buf, sizeof(buf));
	unsigned n = 0;

	if (len < 0)
		return (int)len;
	for (char *line = strtok_r(buf, "\n", &save); line && n < max; line = strtok_r(NULL, "\n", &save)) {
		char *text = strchr(line, ']');

		if (!text || text[1] != ' ')
			continue;
		out[n] = arena_intern(arena, text + 2);
		if (!out[n])
			return -ENOMEM;
		n++;
	}
	return (int)n;
}

int task_numbers_list(const struct process *process, struct task_numbers *out)
{
	struct task_status status;
	int rc = process_list_tids(process, &out->ours);
	bool same = task_status(process, process->pid, &status) == 0 && status.nspids < 2;

	for (size_t i = 0; rc == 0 && i < out->ours.len; i++) {
		pid_t own = out->ours.data[i];

		if (!same)
			own = task_status(process, own, &status) == 0 ? status.ns_pid : 0;
		if (!vec_push(&out->own, own))
			rc = -ENOMEM;
	}
	return rc;
}

void task_numbers_deinit(struct task_numbers *numbers)
{
	vec_deinit(&numbers->ours);
	vec_deinit(&numbers->own);
}

pid_t task_numbers_find(const struct task_numbers *numbers, pid_t own)
{
	for (size_t i = 0; own && i < numbers->own.len; i++)
		if (numbers->own.data[i] == own)
			return numbers->ours.data[i];
	return 0;
}
