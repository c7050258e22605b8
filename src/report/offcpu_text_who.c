/* SPDX-License-Identifier: MIT */
#include "report/offcpu_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "report/shorten.h"

enum {
	SHOWN_MEMBERS = 5, /* so many of those that share a stack are shown; if all are, so many on a line */
	SHORTEST_RUN = 3,  /* so many consecutive tids with one name are shown as a range */
};

static uint64_t hash_name(const char *name)
{
	return hash_bytes(HASH_SEED, name, strlen(name));
}

static bool count_processes(struct offcpu_text *r)
{
	_cleanup_(u64map_deinit) struct u64map pids = {0};
	bool created;

	for (size_t i = 0; i < r->profile->threads.len; i++) {
		const struct offcpu_thread *thread = &r->profile->threads.data[i];

		r->pid = thread->pid;
		if (!u64map_put(&pids, offcpu_process_key(thread->pid, thread->process_start_ns), &created))
			return false;
	}
	r->processes = pids.len;
	if (r->processes != 1)
		r->pid = 0;
	return true;
}

/* Names of processes that differ in their command lines. */
static bool find_ambiguous(struct offcpu_text *r)
{
	_cleanup_(u64map_deinit) struct u64map lines = {0}; /* by name: the first of them */
	bool created;

	for (size_t i = 0; i < r->profile->processes.len; i++) {
		const struct offcpu_identity *process = &r->profile->processes.data[i];
		uint64_t *line;

		if (!process->name || !process->command_line)
			continue;
		line = u64map_put(&lines, hash_name(process->name), &created);
		if (!line)
			return false;
		if (created)
			*line = (uintptr_t)process->command_line;
		else if (strcmp((const char *)(uintptr_t)*line, process->command_line) != 0 &&
			 !u64map_put(&r->ambiguous, hash_name(process->name), &created))
			return false;
	}
	return true;
}

bool offcpu_find_names(struct offcpu_text *r)
{
	return count_processes(r) && find_ambiguous(r);
}

static void put_name(const struct offcpu_text *r, const char *name)
{
	fputc(' ', r->text.out);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, name);
	text_style(&r->text, STYLE_PLAIN);
}

/* What tells the process apart from others of its name; NULL: there are none, or nothing does. */
static const char *command_of(const struct offcpu_text *r, const struct offcpu_who *who)
{
	const struct offcpu_identity *process = offcpu_profile_process(r->profile, who->pid, who->start_ns);

	if (!process || !process->name || !process->command_line)
		return NULL;
	return u64map_find(&r->ambiguous, hash_name(process->name)) ? process->command_line : NULL;
}

/* As much of it as there is room for. */
static void put_command(const struct offcpu_text *r, const char *line, size_t columns)
{
	_cleanup_free_ char *whole = NULL;
	size_t len, shown = 0;
	const struct text plain = {.out = open_memstream(&whole, &len)};

	if (!plain.out)
		return;
	text_untrusted(&plain, line);
	if (fclose(plain.out) != 0 || !whole)
		return;
	if (text_columns(whole) <= columns) {
		fputs(whole, r->text.out);
		return;
	}
	for (size_t used = 1; used < columns; used++)
		do
			shown++;
		while (((unsigned char)whole[shown] & 0xc0) == 0x80);
	fprintf(r->text.out, "%.*s…", (int)shown, whole);
}

/* Returns how many columns it took. */
static size_t put_number(const struct offcpu_text *r, const struct offcpu_who *who, const char *name)
{
	int columns = fprintf(r->text.out, "%s %d", who->tid ? "tid" : "pid", who->tid ? who->tid : who->pid);

	if (who->tid && who->nth > 1)
		columns += fprintf(r->text.out, "#%u", who->nth); /* other threads had the tid before */
	put_name(r, name);
	return (columns > 0 ? (size_t)columns : 0) + 1 + text_columns(name);
}

void offcpu_put_who(const struct offcpu_text *r, const struct offcpu_who *who)
{
	enum { LEAST = 8 };
	const bool other = who->tid && who->tid != who->pid && who->pid != r->pid;
	const char *command = command_of(r, who);
	size_t taken = put_number(r, who, who->name && *who->name ? who->name : "?") + strlen(" ()"), room = SIZE_MAX;

	if (other)
		taken += strlen("pid 1234567: ");
	if (who->columns)
		room = who->columns > taken ? who->columns - taken : 0;
	command = room < LEAST ? NULL : command;
	if (!other && !command)
		return;
	fputs(" (", r->text.out);
	if (other)
		fprintf(r->text.out, "pid %d%s", who->pid, command ? ": " : "");
	if (command)
		put_command(r, command, room);
	fputc(')', r->text.out);
}

void offcpu_put_program(const struct offcpu_text *r, const struct offcpu_who *who, size_t processes, size_t threads)
{
	const struct offcpu_identity *process = offcpu_profile_process(r->profile, who->pid, who->start_ns);
	const char *name = who->name && *who->name ? who->name : "?";

	fprintf(r->text.out, "%zu processes of", processes);
	put_name(r, name);
	if (process && process->script && strcmp(process->script, name) != 0)
		put_name(r, process->script);
	if (threads > processes)
		fprintf(r->text.out, ", %zu threads", threads);
}

/* The heaviest first. At most a fifth less than it: as alike as in offcpu_groups.c. */
static bool are_alike(const struct offcpu_member *members, size_t n)
{
	return members[n - 1].total_ns >= members[0].total_ns - members[0].total_ns / 5;
}

void offcpu_put_processes(const struct offcpu_text *r, const struct offcpu_member *members, size_t n)
{
	const bool times = !are_alike(members, n);
	char time[DURATION_LEN];
	FILE *out = r->text.out;
	uint64_t rest_ns = 0;
	size_t done = 0;

	fputs("pid ", out);
	for (; done < n && (done < SHOWN_MEMBERS || r->options->verbose); done++) {
		if (done)
			fputs(done % SHOWN_MEMBERS ? ", " : ",\n      ", out);
		fprintf(out, "%d", members[done].pid);
		if (times)
			fprintf(out, " %s", offcpu_format_wait(members[done].total_ns, time));
	}
	if (done == n)
		return;
	for (size_t i = done; i < n; i++)
		rest_ns += members[i].total_ns;
	fprintf(out, ", and %zu more", n - done);
	if (times)
		fprintf(out, " %s", offcpu_format_wait(rest_ns, time));
}

static const char *name_of(const struct offcpu_part *thread)
{
	return thread->row->thread_name && *thread->row->thread_name ? thread->row->thread_name : "?";
}

/* How many from here on have the same name and consecutive tids. */
static size_t run_length(const struct offcpu_part *threads, size_t n)
{
	size_t len = 1;

	while (len < n && threads[len].row->tid == threads[0].row->tid + (pid_t)len &&
	       strcmp(name_of(&threads[len]), name_of(&threads[0])) == 0)
		len++;
	return len < SHORTEST_RUN ? 1 : len;
}

void offcpu_put_members(const struct offcpu_text *r, const struct offcpu_part *threads, size_t n, bool times)
{
	char time[DURATION_LEN];
	FILE *out = r->text.out;
	uint64_t rest_ns = 0;
	size_t done = 0, len;

	fputs("tid ", out);
	for (size_t i = 0; done < n && (i < SHOWN_MEMBERS || r->options->verbose); i++, done += len) {
		const struct offcpu_part *thread = &threads[done];

		len = times ? 1 : run_length(thread, n - done);
		if (i)
			fputs(i % SHOWN_MEMBERS ? ", " : ",\n      ", out);
		fprintf(out, "%d", thread->row->tid);
		if (len > 1)
			fprintf(out, "-%d", thread[len - 1].row->tid);
		if (times ? !done || strcmp(name_of(thread), name_of(thread - 1)) != 0
			  : done + len == n || (i + 1 == SHOWN_MEMBERS && !r->options->verbose) ||
				    strcmp(name_of(thread), name_of(thread + len)) != 0)
			put_name(r, name_of(thread)); /* it stands for its neighbours, too */
		if (times)
			fprintf(out, " %s", offcpu_format_wait(thread->sum.total_ns, time));
	}
	if (done == n)
		return;
	for (size_t i = done; i < n; i++)
		rest_ns += threads[i].sum.total_ns;
	fprintf(out, ", and %zu more", n - done);
	if (times)
		fprintf(out, " %s", offcpu_format_wait(rest_ns, time));
}
