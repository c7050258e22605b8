/* SPDX-License-Identifier: MIT */
#include "cmd/process_args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/commands.h"
#include "cmd/likeness.h"
#include "cmd/parse.h"
#include "cmd/terminal.h"
#include "proc/family.h"
#include "base/user.h"
#include "report/text_format.h"
#include "target/process_names.h"

enum { MAX_LISTED = 40, BEFORE_COMMAND = 9 + 2 + 12 + 1 + 12 + 1 + 8 + 2 };

DEFINE_CLEANUP(arena, struct arena *, arena_destroy)

static int parse_number(const char *text, pid_t *out, struct err *err)
{
	uint64_t number;

	if (strspn(text, "0123456789") != strlen(text) || !parse_size(text, 1, INT32_MAX, &number))
		return err_set(err, EINVAL, "'%s' is not a process or thread id", text);
	*out = (pid_t)number;
	return 0;
}

static int add_once(struct tid_list *list, pid_t pid, struct err *err)
{
	return tid_list_has(list, pid) || vec_push(list, pid) ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int add_process(struct process_ids *ids, struct process_id id, struct err *err)
{
	return process_ids_have(ids, id.pid) || vec_push(ids, id) ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* A copy of what is before the next comma, and where to go on; NULL when memory is exhausted. */
static char *next_part(const char **text)
{
	size_t len = strcspn(*text, ",");
	char *part = strndup(*text, len);

	*text = (*text)[len] ? *text + len + 1 : NULL;
	return part;
}

static int add_part(struct process_args *args, const char *part, struct err *err)
{
	struct process_arg arg = {0};
	int rc;

	if (!*part || *part == '-')
		return err_set(err, EINVAL, "'%s' is neither a process id nor a name", part);
	if (strspn(part, "0123456789") == strlen(part)) {
		rc = parse_number(part, &arg.pid, err);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < args->len; i++)
		if (arg.pid ? args->data[i].pid == arg.pid
			    : args->data[i].name && strcmp(args->data[i].name, part) == 0)
			return 0;
	arg.name = arg.pid ? NULL : strdup(part);
	if ((arg.pid || arg.name) && vec_push(args, arg))
		return 0;
	free(arg.name);
	return err_set(err, ENOMEM, "out of memory");
}

int process_args_add(struct process_args *args, const char *text, struct err *err)
{
	int rc = 0;

	while (rc == 0 && text) {
		_cleanup_free_ char *part = next_part(&text);

		rc = part ? add_part(args, part, err) : err_set(err, ENOMEM, "out of memory");
	}
	return rc;
}

int process_args_add_numbers(struct tid_list *numbers, const char *text, struct err *err)
{
	int rc = 0;

	while (rc == 0 && text) {
		_cleanup_free_ char *part = next_part(&text);
		pid_t number;

		rc = part ? parse_number(part, &number, err) : err_set(err, ENOMEM, "out of memory");
		if (rc == 0)
			rc = add_once(numbers, number, err);
	}
	return rc;
}

bool process_args_have_names(const struct process_args *args)
{
	for (size_t i = 0; i < args->len; i++)
		if (args->data[i].name)
			return true;
	return false;
}

/* "; did you mean …?", or "". */
static const char *guess(const char *word, const struct process_names *names, struct arena *arena)
{
	const struct command *command = command_like(word);
	struct likeness likeness = {.word = word};
	const char *text;

	for (size_t i = 0; i < names->len; i++)
		likeness_try(&likeness, names->data[i].name);
	if (command)
		text = arena_printf(arena, "; did you mean 'stakeout %s'?", command->name);
	else if (likeness.best)
		text = arena_printf(arena, "; did you mean '%s'?", likeness.best);
	else
		text = "";
	return text ? text : "";
}

static bool descends_from(pid_t pid, const struct process_ids *others)
{
	enum { MAX_GENERATIONS = 64 };
	int generation = 0;

	for (pid = process_parent(pid); pid > 0 && generation < MAX_GENERATIONS;
	     pid = process_parent(pid), generation++)
		if (process_ids_have(others, pid))
			return true;
	return false;
}

/* Children of another one come along with that. */
static void keep_ancestors(struct process_ids *ids)
{
	size_t kept = 0;

	for (size_t i = 0; i < ids->len; i++)
		if (!descends_from(ids->data[i].pid, ids))
			ids->data[kept++] = ids->data[i];
	ids->len = kept;
}

static int find_name(const struct process_names *names, const char *name, struct err *err, struct process_ids *out)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < names->len; i++)
		if (strcmp(names->data[i].name, name) == 0)
			rc = add_process(out, names->data[i].id, err);
	return rc;
}

static const char *describe_user(uint32_t uid, char *buf, size_t size)
{
	if (!user_name(uid, buf, size))
		snprintf(buf, size, "%u", (unsigned)uid);
	return buf;
}

/* The start of it, as far as the terminal has room. */
static void put_command_line(const struct text *text, const char *line, size_t taken)
{
	unsigned columns, rows;
	char start[512];
	size_t len = strlen(line), room = len;

	if (terminal_size(STDERR_FILENO, &columns, &rows))
		room = columns > taken + 1 ? columns - taken - 1 : 1;
	if (room >= len || room >= sizeof(start)) {
		text_untrusted(text, line);
		return;
	}
	memcpy(start, line, room);
	while (room && ((unsigned char)line[room] & 0xc0) == 0x80) /* in the middle of a character */
		room--;
	start[room] = '\0';
	text_untrusted(text, start);
	fputs("…", text->out);
}

static void show_namesakes(const struct process_ids *ids, struct arena *arena)
{
	const struct text text = {.out = stderr};
	struct process_portrait portrait;
	char age[DURATION_LEN], user[64];
	size_t shown = ids->len > MAX_LISTED ? MAX_LISTED : ids->len;

	fprintf(stderr, "%9s  %-12s %12s %8s  %s\n", "PID", "USER", "AGE", "THREADS", "COMMAND");
	for (size_t i = 0; i < shown; i++) {
		if (process_portrait(ids->data[i].pid, arena, &portrait) < 0)
			continue;
		fprintf(stderr, "%9d  %-12s %12s %8d  ", (int)portrait.pid, describe_user(portrait.uid, user, sizeof(user)),
			format_duration(portrait.age_ns, age), portrait.threads);
		put_command_line(&text, portrait.command_line, BEFORE_COMMAND);
		fputc('\n', stderr);
	}
	if (shown < ids->len)
		fprintf(stderr, "%9s  and %zu more\n", "…", ids->len - shown);
}

static int take_name(const struct process_args *args, const char *name, const struct process_names *names,
		     struct arena *arena, struct err *err, struct process_ids *out, struct notes *missing)
{
	struct process_ids found = {0};
	int rc = find_name(names, name, err, &found);

	if (rc == 0 && args->children)
		keep_ancestors(&found);
	if (rc == 0 && !found.len)
		notes_add(missing, "there is no process named '%s'%s", name, guess(name, names, arena));
	if (rc == 0 && found.len > 1 && !args->all) {
		show_namesakes(&found, arena);
		rc = err_set(err, ENOTUNIQ, "%zu processes are named '%s': give the pid of one%s", found.len, name,
			     args->takes_all ? ", or --all for all of them" : "");
	}
	for (size_t i = 0; rc == 0 && i < found.len; i++)
		rc = add_process(out, found.data[i], err);
	vec_deinit(&found);
	return rc;
}

int process_args_find(const struct process_args *args, struct err *err, struct process_ids *out, struct notes *missing)
{
	_cleanup_(cleanup_arena) struct arena *arena = arena_create();
	struct process_names names = {0};
	int rc = arena ? 0 : err_set(err, ENOMEM, "out of memory");

	if (rc == 0 && process_args_have_names(args))
		rc = process_names_list(arena, err, &names);
	for (size_t i = 0; rc == 0 && i < args->len; i++)
		rc = args->data[i].pid ? add_process(out, (struct process_id){.pid = args->data[i].pid}, err)
				       : take_name(args, args->data[i].name, &names, arena, err, out, missing);
	vec_deinit(&names);
	return rc;
}

void process_args_deinit(struct process_args *args)
{
	for (size_t i = 0; i < args->len; i++)
		free(args->data[i].name);
	vec_deinit(args);
}
