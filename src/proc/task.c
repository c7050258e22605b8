/* SPDX-License-Identifier: MIT */
#include "proc/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ssize_t read_task_file(const struct process *process, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", (int)tid, name);
	return process_read_file(process->task_fd, path, buf, size);
}

/* What follows `key` at the start of a line, or NULL. */
static const char *field(const char *status, const char *key)
{
	const char *p = strstr(status, key);

	return p ? p + strlen(key) : NULL;
}

/* "status" shows a newline in a name as \\n and a backslash as two. */
static void unescape(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		if (text[i] == '\\' && i + 1 < len) {
			i++;
			out[n++] = text[i] == 'n' ? '\n' : text[i];
		} else {
			out[n++] = text[i];
		}
	}
	out[n] = '\0';
}

int task_status(const struct process *process, pid_t tid, struct task_status *out)
{
	char buf[4096];
	ssize_t len = read_task_file(process, tid, "status", buf, sizeof(buf));
	const char *name, *state, *tracer, *nvcsw, *nivcsw;

	if (len < 0)
		return (int)len;
	name = field(buf, "Name:\t");
	state = field(buf, "\nState:\t");
	tracer = field(buf, "\nTracerPid:\t");
	nvcsw = field(buf, "\nvoluntary_ctxt_switches:\t");
	nivcsw = field(buf, "\nnonvoluntary_ctxt_switches:\t");
	if (!name || !state || !tracer || !nvcsw || !nivcsw)
		return -ESRCH;
	*out = (struct task_status){
		.state = state[0],
		.tracer = (pid_t)strtol(tracer, NULL, 10),
		.nvcsw = strtoull(nvcsw, NULL, 10),
		.nivcsw = strtoull(nivcsw, NULL, 10),
	};
	unescape(name, strcspn(name, "\n"), out->name, sizeof(out->name));
	return 0;
}

int task_runs(const struct process *process, pid_t tid, uint64_t *out)
{
	char buf[128];
	ssize_t len = read_task_file(process, tid, "schedstat", buf, sizeof(buf));

	if (len < 0)
		return (int)len;
	return sscanf(buf, "%*u %*u %" SCNu64, out) == 1 ? 0 : -EINVAL;
}

/* What follows the name in "stat": state, ppid…; NULL when the thread has ended. */
static const char *read_stat(const struct process *process, pid_t tid, char *buf, size_t size)
{
	const char *paren;

	if (read_task_file(process, tid, "stat", buf, size) < 0)
		return NULL;
	paren = strrchr(buf, ')');
	return paren && paren[1] == ' ' && paren[2] ? paren + 2 : NULL;
}

int task_state(const struct process *process, pid_t tid, char *out)
{
	char buf[512];
	const char *fields = read_stat(process, tid, buf, sizeof(buf));

	if (!fields)
		return -ESRCH;
	*out = fields[0];
	return 0;
}

bool task_is_kernel_worker(const struct process *process, pid_t tid)
{
	enum { PF_IO_WORKER = 0x10 };
	char buf[512];
	const char *fields = read_stat(process, tid, buf, sizeof(buf));
	unsigned long flags;

	return fields && sscanf(fields, "%*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && flags & PF_IO_WORKER;
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
