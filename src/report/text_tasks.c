/* SPDX-License-Identifier: MIT */
#include "report/text_tasks.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "report/shorten.h"
#include "report/text_frame.h"
#include "report/text_table.h"

enum {
	LINE_WIDTH = 100,  /* of lists, where the terminal has no other */
	NAME_WIDTH = 32,   /* of one name in them */
	MORE_WIDTH = 18,   /* " … and 4000 more" */
	COUNT_WIDTH = 7,   /* of the columns of the table */
	STATE_WIDTH = 11,
	WHO_WIDTH = 23,
	LEAST_WHERE = 16,
};

static const char *state_word(enum task_state state)
{
	return state == TASK_CREATED ? "not started" : task_state_name(state);
}

static const struct trace_task *first_of(const struct task_groups *groups, size_t i)
{
	return groups->members[groups->data[i].first];
}

/* Groups of different processes and libraries are not mixed: this is the first of one's. */
static bool begins_library(const struct task_groups *groups, size_t i)
{
	return !i || first_of(groups, i)->snap != first_of(groups, i - 1)->snap ||
	       strcmp(first_of(groups, i)->library, first_of(groups, i - 1)->library) != 0;
}

/* "asyncio: 240 tasks" */
static void put_title(const struct text *t, const struct task_groups *groups, size_t from, bool several)
{
	const struct trace_task *first = first_of(groups, from);
	size_t n = 0;

	for (size_t i = from; i < groups->len && (i == from || !begins_library(groups, i)); i++)
		n += groups->data[i].count;
	fputc('\n', t->out);
	text_style(t, STYLE_STRONG);
	text_untrusted(t, first->library);
	text_style(t, STYLE_PLAIN);
	fprintf(t->out, ": %zu %s", n, n == 1 ? "task" : "tasks");
	if (several)
		fprintf(t->out, " (pid %d)", (int)first->snap->pid);
	fputc('\n', t->out);
}

/* The name of the task that all of them await; NULL: there is none, or not only one. */
static const char *awaited_task(const struct trace_task *const *members, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (!same_text(members[0]->awaits_task, members[i]->awaits_task))
			return NULL;
	return members[0]->awaits_task;
}

/* "awaits Task 'loader'", "awaits Future through Reader" */
static void put_awaited(const struct text *t, const struct trace_task *const *members, size_t count)
{
	const struct trace_task *first = members[0];
	const char *task = awaited_task(members, count);

	fputs("awaits ", t->out);
	text_untrusted(t, first->awaits ? first->awaits : first->through ? first->through : "nothing: can go on");
	if (task) {
		fputs(" '", t->out);
		text_untrusted(t, task);
		fputc('\'', t->out);
	}
	if (first->awaits && first->through) {
		fputs(" through ", t->out);
		text_untrusted(t, first->through);
	}
}

static void put_name(const struct text *t, const char *name, size_t room)
{
	_cleanup_free_ char *fitting = name ? shorten_name(name, room) : NULL;

	text_style(t, STYLE_STRONG);
	text_untrusted(t, fitting ? fitting : name ? name : "?");
	text_style(t, STYLE_PLAIN);
}

/* "  loader, fetch 1, fetch 2 … and 117 more": as many as a line has room for. */
static void put_names(const struct text *t, const struct trace_task *const *members, size_t count, unsigned width)
{
	size_t column = 2, room = width > LINE_WIDTH / 2 ? width : LINE_WIDTH;

	fputs("  ", t->out);
	for (size_t i = 0; i < count; i++) {
		size_t columns = text_columns(members[i]->name ? members[i]->name : "?");

		columns = columns < NAME_WIDTH ? columns : NAME_WIDTH;
		if (i && column + 2 + columns + MORE_WIDTH > room) {
			fprintf(t->out, " … and %zu more", count - i);
			break;
		}
		fputs(i ? ", " : "", t->out);
		put_name(t, members[i]->name, NAME_WIDTH);
		column += columns + (i ? 2 : 0);
	}
	fputc('\n', t->out);
}

/* The thread that runs all of them; 0: there is none, or not only one. */
static pid_t thread_of(const struct trace_task *const *members, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (members[i]->tid != members[0]->tid)
			return 0;
	return members[0]->tid;
}

static void put_head(const struct text *t, const struct trace_task *const *members, size_t count, unsigned width)
{
	pid_t tid = thread_of(members, count);

	fputs(count == 1 ? "\ntask " : "\n", t->out);
	if (count == 1) {
		put_name(t, members[0]->name, LINE_WIDTH);
	} else {
		text_style(t, STYLE_STRONG);
		fprintf(t->out, "%zu tasks", count);
		text_style(t, STYLE_PLAIN);
	}
	fprintf(t->out, "  %s", state_word(members[0]->state));
	if (tid)
		fprintf(t->out, "  in the loop of tid %d", (int)tid);
	fputc('\n', t->out);
	if (count > 1)
		put_names(t, members, count, width);
	if (members[0]->state == TASK_SUSPENDED) {
		fputs("  ", t->out);
		text_style(t, STYLE_CALL);
		put_awaited(t, members, count);
		text_style(t, STYLE_PLAIN);
		fputc('\n', t->out);
	}
}

static void put_group(const struct text *t, const struct trace_task *const *members, size_t count,
		      const struct report_options *options)
{
	const struct frame_format format = {.verbose = options->verbose, .no_addresses = true, .width = options->width};

	put_head(t, members, count, options->width);
	text_user_stack(t, &format, members[0]->stack);
	if (members[0]->state == TASK_RUNNING)
		fputs("  -- it runs: what it calls is in the stack of its thread\n", t->out);
	if (members[0]->problem) {
		fputs("  -- frames are missing: ", t->out);
		text_untrusted(t, members[0]->problem);
		fputc('\n', t->out);
	}
}

void text_tasks(const struct text *t, const struct task_groups *groups, const struct report_options *options, bool several)
{
	for (size_t i = 0; i < groups->len; i++) {
		if (begins_library(groups, i))
			put_title(t, groups, i, several);
		put_group(t, groups->members + groups->data[i].first, groups->data[i].count, options);
	}
}

size_t text_tasks_lines(const struct task_groups *groups)
{
	size_t n = 0;

	for (size_t i = 0; i < groups->len; i++)
		n += 3 + first_of(groups, i)->stack->len;
	return n;
}

/* The line of a group in the table. */

/* "loader", or "fetch 1 …" when there are several names; for free(). */
static char *format_who(const struct trace_task *const *members, size_t count)
{
	const char *name = members[0]->name ? members[0]->name : "?";
	char *who = NULL;
	size_t len;
	const struct text text = {.out = open_memstream(&who, &len)};

	if (!text.out)
		return NULL;
	text_untrusted(&text, name);
	fputs(count > 1 ? " …" : "", text.out);
	fclose(text.out);
	return who;
}

/* " (awaits Future)"; for free(). */
static char *format_awaited(const struct trace_task *const *members, size_t count)
{
	char *awaited = NULL;
	size_t len;
	const struct text text = {.out = open_memstream(&awaited, &len)};

	if (!text.out)
		return NULL;
	if (members[0]->state == TASK_SUSPENDED && (members[0]->awaits || members[0]->through)) {
		fputs(" (", text.out);
		put_awaited(&text, members, count);
		fputc(')', text.out);
	}
	fclose(text.out);
	return awaited;
}

static void put_line(const struct text *t, const struct trace_task *const *members, size_t count, unsigned width)
{
	enum { TAKEN = COUNT_WIDTH + 2 + STATE_WIDTH + 2 + WHO_WIDTH + 2 };
	const struct frame *frame = text_table_program(members[0]->stack);
	_cleanup_free_ char *who = format_who(members, count), *fitting = who ? shorten_name(who, WHO_WIDTH) : NULL;
	_cleanup_free_ char *awaited = format_awaited(members, count);
	size_t room = width > TAKEN + LEAST_WHERE ? width - TAKEN : width ? LEAST_WHERE : SIZE_MAX;
	size_t columns = awaited ? text_columns(awaited) : 0;
	size_t name = frame && frame->symbol ? text_columns(frame->symbol) : 1;

	if (!fitting || !awaited)
		return;
	if (room < columns + (name < LEAST_WHERE ? name : LEAST_WHERE))
		columns = 0;
	fprintf(t->out, "%*zu  %-*s  %s%*s  ", COUNT_WIDTH, count, STATE_WIDTH, state_word(members[0]->state), fitting,
		WHO_WIDTH - (int)text_columns(fitting), "");
	put_name(t, frame ? frame->symbol : NULL, room - columns);
	fprintf(t->out, "%s\n", columns ? awaited : "");
}

void text_tasks_table(const struct text *t, const struct task_groups *groups, unsigned width, bool several)
{
	for (size_t i = 0; i < groups->len; i++) {
		if (begins_library(groups, i)) {
			put_title(t, groups, i, several);
			text_style(t, STYLE_DIM);
			fprintf(t->out, "%*s  %-*s  %-*s  %s\n", COUNT_WIDTH, "tasks", STATE_WIDTH, "state", WHO_WIDTH, "task", "in");
			text_style(t, STYLE_PLAIN);
		}
		put_line(t, groups->members + groups->data[i].first, groups->data[i].count, width);
	}
}
