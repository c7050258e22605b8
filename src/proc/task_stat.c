/* SPDX-License-Identifier: MIT */
#include "proc/task_stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/process.h"

enum {
	MAX_STAT = 2048, /* it has 52 fields of at most 20 digits, and a name of at most 64 bytes */
	/* as proc(5) counts */
	FIELD_STATE = 3,
	FIELD_PARENT = 4,
	FIELD_GROUP = 5,
	FIELD_FLAGS = 9,
	FIELD_START_TIME = 22,
	FIELD_START_STACK = 28,
	FIELD_EXIT_SIGNAL = 38,
	FIELD_CPU = 39,
};

static void take_field(int number, const char *text, struct task_stat *out)
{
	switch (number) {
	case FIELD_STATE:
		out->state = text[0];
		break;
	case FIELD_PARENT:
		out->parent = (pid_t)strtol(text, NULL, 10);
		break;
	case FIELD_GROUP:
		out->group = (pid_t)strtol(text, NULL, 10);
		break;
	case FIELD_FLAGS:
		out->flags = strtoull(text, NULL, 10);
		break;
	case FIELD_START_TIME:
		out->start_time = strtoull(text, NULL, 10);
		break;
	case FIELD_START_STACK:
		out->start_stack = strtoull(text, NULL, 10);
		break;
	case FIELD_EXIT_SIGNAL:
		out->exit_signal = (int)strtol(text, NULL, 10);
		break;
	case FIELD_CPU:
		out->cpu = (int)strtol(text, NULL, 10);
		break;
	default:
		break;
	}
}

int task_stat_read(int dir_fd, const char *path, struct task_stat *out)
{
	char buf[MAX_STAT];
	ssize_t len = process_read_file(dir_fd, path, buf, sizeof(buf));
	/* The name may contain anything, even ") R": the last parenthesis ends it. */
	const char *open_paren = len < 0 ? NULL : strchr(buf, '('), *at = len < 0 ? NULL : strrchr(buf, ')');
	int number = FIELD_STATE;

	if (len < 0)
		return (int)len;
	*out = (struct task_stat){.cpu = -1};
	if (!open_paren || !at || at < open_paren)
		return -EINVAL;
	snprintf(out->name, sizeof(out->name), "%.*s", (int)(at - open_paren - 1), open_paren + 1);
	for (at = strchr(at, ' '); at && at[1] && number <= FIELD_CPU; at = strchr(at + 1, ' '))
		take_field(number++, at + 1, out);
	return number > FIELD_START_TIME ? 0 : -EINVAL;
}
