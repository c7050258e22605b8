/* SPDX-License-Identifier: MIT */
#include "proc/task_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MAX_LINE = 4096 }; /* only the beginning of longer ones is used: the lines that matter here are short */

/* "status" shows a newline in a name as \\n and a backslash as two. */
static void parse_name(const char *text, struct task_status *out)
{
	size_t n = 0;

	for (; *text && n + 1 < sizeof(out->name); text++) {
		if (*text == '\\' && text[1]) {
			text++;
			out->name[n++] = *text == 'n' ? '\n' : *text;
		} else {
			out->name[n++] = *text;
		}
	}
	out->name[n] = '\0';
}

static void parse_state(const char *text, struct task_status *out)
{
	out->state = text[0];
}

static void parse_tgid(const char *text, struct task_status *out)
{
	out->tgid = (pid_t)strtol(text, NULL, 10);
}

static void parse_tracer(const char *text, struct task_status *out)
{
	out->tracer = (pid_t)strtol(text, NULL, 10);
}

static void parse_ids(const char *text, uint32_t ids[static TASK_IDS])
{
	char *end;

	for (int i = 0; i < TASK_IDS; i++, text = end)
		ids[i] = (uint32_t)strtoul(text, &end, 10);
}

static void parse_uids(const char *text, struct task_status *out)
{
	parse_ids(text, out->uids);
}

static void parse_gids(const char *text, struct task_status *out)
{
	parse_ids(text, out->gids);
}

static void parse_ns_pids(const char *text, struct task_status *out)
{
	char *end;

	for (;; text = end) {
		long number = strtol(text, &end, 10);

		if (end == text)
			return;
		out->ns_pid = (pid_t)number;
		out->nspids++;
	}
}

static void parse_permitted(const char *text, struct task_status *out)
{
	out->permitted = strtoull(text, NULL, 16);
}

static void parse_effective(const char *text, struct task_status *out)
{
	out->effective = strtoull(text, NULL, 16);
}

static void parse_caught(const char *text, struct task_status *out)
{
	out->caught = strtoull(text, NULL, 16);
}

static void parse_nvcsw(const char *text, struct task_status *out)
{
	out->nvcsw = strtoull(text, NULL, 10);
}

static void parse_nivcsw(const char *text, struct task_status *out)
{
	out->nivcsw = strtoull(text, NULL, 10);
	out->has_switches = true;
}

static void parse_line(const char *line, struct task_status *out)
{
	static const struct {
		const char *key;
		void (*parse)(const char *text, struct task_status *out);
	} fields[] = {
		{"Name:\t", parse_name},
		{"State:\t", parse_state},
		{"Tgid:\t", parse_tgid},
		{"TracerPid:\t", parse_tracer},
		{"Uid:\t", parse_uids},
		{"Gid:\t", parse_gids},
		{"NSpid:\t", parse_ns_pids},
		{"SigCgt:\t", parse_caught},
		{"CapPrm:\t", parse_permitted},
		{"CapEff:\t", parse_effective},
		{"voluntary_ctxt_switches:\t", parse_nvcsw},
		{"nonvoluntary_ctxt_switches:\t", parse_nivcsw},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t len = strlen(fields[i].key);

		if (line[0] == fields[i].key[0] && strncmp(line, fields[i].key, len) == 0) {
			fields[i].parse(line + len, out);
			return;
		}
	}
}

/* The part of a file that was read but not used yet. */
struct reader {
	char text[MAX_LINE + 1];
	size_t len;
	bool inside; /* the rest of a line that was too long */
};

static void parse_lines(struct reader *r, struct task_status *out)
{
	char *line = r->text, *end = r->text + r->len;

	while (line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline && line > r->text)
			break;
		if (!newline && r->len < MAX_LINE)
			break;
		*(newline ? newline : end) = '\0';
		if (!r->inside)
			parse_line(line, out);
		r->inside = !newline;
		line = newline ? newline + 1 : end;
	}
	r->len = (size_t)(end - line);
	memmove(r->text, line, r->len);
}

int task_status_read(int dir_fd, const char *path, struct task_status *out)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	struct reader r = {.len = 0};

	if (fd < 0)
		return -errno;
	*out = (struct task_status){0};
	for (;;) {
		ssize_t n = read(fd, r.text + r.len, MAX_LINE - r.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return out->state ? 0 : -ESRCH;
		r.len += (size_t)n;
		parse_lines(&r, out);
	}
}
