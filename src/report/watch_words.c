/* SPDX-License-Identifier: MIT */
#include "report/watch_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/shorten.h"
#include "report/text_table.h"
#include "report/wait_words.h"

enum {
	MOST_CALLS = 4,
	MOST_COLUMNS = 48, /* of a name */
};

static const struct deadlocks no_deadlocks;

struct why_report watch_why_report(const struct watch_report *report, const struct report_options *options, FILE *out)
{
	return (struct why_report){
		.text = {.out = out, .color = options->color},
		.options = options,
		.traces = report->traces,
		.n = report->n,
		.deadlocks = report->deadlocks ? report->deadlocks : &no_deadlocks,
	};
}

void watch_put_thread(const struct why_report *r, const struct watched_thread *t)
{
	fprintf(r->text.out, "tid %d ", (int)t->tid);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, t->name);
	text_style(&r->text, STYLE_PLAIN);
	if (r->n > 1 && t->tid != t->pid)
		fprintf(r->text.out, " (pid %d)", (int)t->pid);
}

void watch_put_threads(const struct why_report *r, const struct watched_thread *const *members, size_t count)
{
	if (count == 1)
		watch_put_thread(r, members[0]);
	else
		fprintf(r->text.out, "%zu threads", count);
}

void watch_put_doing(const struct why_report *r, const struct watched_thread *const *members, size_t count)
{
	_cleanup_free_ const struct trace_thread **traced = calloc(count, sizeof(*traced));
	const struct trace_thread *const *all = traced ? traced : &members[0]->traced;
	bool same = true;

	for (size_t i = 0; traced && i < count; i++)
		traced[i] = members[i]->traced;
	for (size_t i = 1; i < count; i++)
		same &= wait_compare(members[i - 1]->traced, members[i]->traced) == 0;
	fputs(same ? "" : "of which one ", r->text.out);
	why_put_doing(r, all, traced && same ? count : 1);
	if (members[0]->traced->wait.kind && same)
		why_put_chain(r, all, traced ? count : 1);
	why_put_others(&r->text, all, traced ? count : 1);
}

void watch_put_share(const struct text *t, int64_t share)
{
	enum { PERCENT = 100, WHOLE_FROM = 10 * PERCENT };

	if (share < 0)
		fputs("CPU not known", t->out);
	else if (share >= WHOLE_FROM)
		fprintf(t->out, "%.0f %% CPU", (double)share / PERCENT);
	else if (share > 0 && share < 10)
		fputs("less than 0.1 % CPU", t->out);
	else
		fprintf(t->out, "%.1f %% CPU", (double)share / PERCENT);
}

/* All threads, and programs, begin with these. */
static bool is_beginning(const char *symbol)
{
	static const char *const names[] = {
		"_start", "__libc_start_", "start_thread", "clone", "__clone", "thread_start", "Thread.run", "Thread._bootstrap", "java.lang.Thread.run",
		"Thread::call_run", "call_stub",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(symbol, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void put_name(const struct text *t, const struct frame *frame)
{
	_cleanup_free_ char *name = frame->symbol ? shorten_symbol(frame, MOST_COLUMNS) : NULL;

	if (frame->symbol) {
		text_untrusted(t, name ? name : frame->symbol);
		if (frame->symbol[0] == '<' && frame->file && frame->line) { /* without a name: "<module> app.py:12" */
			fputc(' ', t->out);
			text_untrusted(t, path_tail(frame->file, 1));
			fprintf(t->out, ":%u", (unsigned)frame->line);
		}
	} else if (frame->module) {
		fputs("?? (", t->out);
		text_untrusted(t, path_tail(frame->module->path, 1));
		fputc(')', t->out);
	} else {
		fprintf(t->out, "?? 0x%" PRIx64, frame->address);
	}
}

void watch_name_place(const struct trace_thread *t, char out[static WATCH_PLACE])
{
	const struct frame *frame = text_table_frame(t);
	const struct text text = {.out = frame ? fmemopen(out, WATCH_PLACE, "w") : NULL};

	out[0] = '\0';
	if (!text.out)
		return;
	put_name(&text, frame);
	fclose(text.out);
	out[WATCH_PLACE - 1] = '\0';
}

void watch_put_path(const struct why_report *r, const struct trace_thread *t, const char *before)
{
	const struct frame *place = text_table_frame(t);
	const struct stack *user = t->user;
	size_t calls = 0, i = 0;

	if (!place)
		return;
	fputs(before, r->text.out);
	text_style(&r->text, STYLE_STRONG);
	put_name(&r->text, place);
	text_style(&r->text, STYLE_PLAIN);
	while (user && i < user->len && &user->data[i] != place)
		i++;
	for (i++; user && i < user->len && calls < MOST_CALLS; i++) {
		const struct frame *frame = &user->data[i];

		if (!frame->symbol || frame->kind == FRAME_KIND_SIGNAL || frame->kind == FRAME_KIND_MARKER)
			continue;
		if (frame_kind_mark(place->kind) && !frame_kind_mark(frame->kind))
			continue; /* what executes the program */
		if (is_beginning(frame->symbol))
			break;
		fputs(" ← ", r->text.out);
		put_name(&r->text, frame);
		calls++;
	}
	fputs(calls == MOST_CALLS ? " ← …" : "", r->text.out);
}
