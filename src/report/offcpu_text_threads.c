/* SPDX-License-Identifier: MIT */
#include "report/offcpu_text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"

enum {
	SHOWN_THREADS = 20,
	FOLDED_THREADS = 3, /* so many threads that wait in one place only, and equally long, make one line */
};

/* A line of the table: a thread, or several added up. */
struct line {
	struct offcpu_thread thread; /* of several threads: the first, with the sums of all */
	const struct offcpu_part *members;
	size_t nmembers; /* 0: it is one thread */
	size_t nthreads; /* how many were added up */
	size_t nprocesses; /* of a program: that these belong to; 0: it is not a program's */
	size_t order;    /* orders equally heavy ones */
};

struct table {
	VEC_FIELDS(struct line);
	struct u64map only_group;    /* pid and tid to the number of the thread's only group, plus one */
	size_t *line_of;             /* for each group, the number of its line plus one; 0: none */
	struct offcpu_part *members; /* of all lines */
	size_t nmembers;
};

enum { SEVERAL = 0 }; /* in only_group: it is in several groups */

static void table_deinit(struct table *table)
{
	vec_deinit(table);
	u64map_deinit(&table->only_group);
	free(table->line_of);
	free(table->members);
}

static uint64_t thread_key(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static uint64_t active_ns(const struct offcpu_thread *thread)
{
	return thread->sum.total_ns > thread->idle_ns ? thread->sum.total_ns - thread->idle_ns : 0;
}

static bool find_only_groups(const struct offcpu_text *r, struct table *table)
{
	for (size_t i = 0; i < r->groups.len; i++) {
		const struct offcpu_group *group = &r->groups.data[i];

		for (size_t t = 0; t < group->nthreads; t++) {
			bool created;
			uint64_t *only = u64map_put(&table->only_group,
						    thread_key(group->threads[t].row->pid, group->threads[t].row->tid),
						    &created);

			if (!only)
				return false;
			*only = created ? i + 1 : SEVERAL;
		}
	}
	return true;
}

static size_t only_group(const struct table *table, pid_t pid, pid_t tid)
{
	const uint64_t *only = u64map_find(&table->only_group, thread_key(pid, tid));

	return only ? *only : SEVERAL;
}

/* Makes one line for the threads that wait only in this group's place, if there are enough of them. */
static bool fold(struct table *table, const struct offcpu_group *group, size_t number)
{
	struct line line = {.members = table->members + table->nmembers};

	for (size_t t = 0; t < group->nthreads; t++)
		if (only_group(table, group->threads[t].row->pid, group->threads[t].row->tid) == number)
			table->members[table->nmembers + line.nmembers++] = group->threads[t];
	if (line.nmembers < FOLDED_THREADS)
		return true;
	if (!vec_push(table, line))
		return false;
	table->nmembers += line.nmembers;
	table->line_of[number - 1] = table->len;
	return true;
}

static bool fold_threads(const struct offcpu_text *r, struct table *table)
{
	bool ok = true;

	table->line_of = calloc(r->groups.len + 1, sizeof(*table->line_of));
	table->members = calloc(r->profile->rows.len + 1, sizeof(*table->members));
	if (!table->line_of || !table->members || !find_only_groups(r, table))
		return false;
	for (size_t i = 0; ok && i < r->groups.len; i++)
		if (r->groups.data[i].alike && !(r->options->hide_idle && r->groups.data[i].idle))
			ok = fold(table, &r->groups.data[i], i + 1);
	return ok;
}

static void add_thread(struct line *line, const struct offcpu_thread *thread, size_t order)
{
	struct offcpu_thread *sums = &line->thread;

	if (!line->nthreads++) {
		*sums = *thread;
		line->order = order;
		return;
	}
	offcpu_sum_merge(&sums->sum, &thread->sum);
	sums->sleeping_ns += thread->sleeping_ns;
	sums->uninterruptible_ns += thread->uninterruptible_ns;
	sums->runnable_ns += thread->runnable_ns;
	sums->idle_ns += thread->idle_ns;
	sums->elapsed_ns += thread->elapsed_ns;
	sums->on_cpu_ns += thread->on_cpu_ns;
}

static int by_falling_active_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	uint64_t active_x = active_ns(&x->thread), active_y = active_ns(&y->thread);

	if (active_x != active_y)
		return active_x < active_y ? 1 : -1;
	if (x->thread.sum.total_ns != y->thread.sum.total_ns)
		return x->thread.sum.total_ns < y->thread.sum.total_ns ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

/* Rows may belong to threads that are not listed. */
static void drop_empty(struct table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->len; i++)
		if (table->data[i].nthreads)
			table->data[kept++] = table->data[i];
	table->len = kept;
}

/* With --no-threads: by what the process of a thread runs, which the rows know. */
static bool note_programs(const struct offcpu_text *r, struct u64map *programs)
{
	bool created;

	for (size_t i = 0; i < r->profile->rows.len; i++) {
		const struct offcpu_row *row = &r->profile->rows.data[i];

		for (size_t k = 0; k < row->nmembers; k++) {
			const struct offcpu_member *member = &r->profile->members.data[row->first_member + k];
			uint64_t *program = u64map_put(programs, offcpu_process_key(member->pid, member->start_ns), &created);

			if (!program)
				return false;
			*program = row->program;
		}
	}
	return true;
}

/* A line for each program. */
static bool find_programs(const struct offcpu_text *r, struct table *table)
{
	_cleanup_(u64map_deinit) struct u64map programs = {0}, lines = {0}, processes = {0};
	bool created;

	if (!note_programs(r, &programs))
		return false;
	for (size_t i = 0; i < r->profile->threads.len; i++) {
		const struct offcpu_thread *thread = &r->profile->threads.data[i];
		const uint64_t process = offcpu_process_key(thread->pid, thread->process_start_ns);
		const uint64_t *program = u64map_find(&programs, process);
		uint64_t *at;

		if (r->options->hide_idle && offcpu_only_idles(thread))
			continue;
		at = u64map_put(&lines, program ? *program : process, &created);
		if (!at || (created && !vec_push(table, (struct line){0})))
			return false;
		if (created)
			*at = table->len;
		if (!u64map_put(&processes, process, &created))
			return false;
		table->data[*at - 1].nprocesses += created;
		add_thread(&table->data[*at - 1], thread, i);
		if (thread->tid == thread->pid)
			table->data[*at - 1].thread.name = thread->name;
	}
	return true;
}

/* By the time that they were not idle; with --hide-idle, only threads that had such time. */
static bool find_lines(const struct offcpu_text *r, struct table *table)
{
	if (r->profile->by_process && !find_programs(r, table))
		return false;
	if (!r->profile->by_process && !r->options->verbose && !fold_threads(r, table))
		return false;
	for (size_t i = r->profile->by_process ? r->profile->threads.len : 0; i < r->profile->threads.len; i++) {
		const struct offcpu_thread *thread = &r->profile->threads.data[i];
		size_t only = only_group(table, thread->pid, thread->tid);

		if (r->options->hide_idle && offcpu_only_idles(thread))
			continue;
		if (only != SEVERAL && table->line_of[only - 1])
			add_thread(&table->data[table->line_of[only - 1] - 1], thread, i);
		else if (!vec_push(table, (struct line){.thread = *thread, .nthreads = 1, .order = i}))
			return false;
	}
	drop_empty(table);
	if (table->len)
		qsort(table->data, table->len, sizeof(*table->data), by_falling_active_time);
	return true;
}

enum column {
	COLUMN_TOTAL,
	COLUMN_ON_CPU,
	COLUMN_SHARE,
	COLUMN_WAITS,
	COLUMN_AVERAGE,
	COLUMN_LONGEST,
	COLUMN_BLOCKED,
	COLUMN_UNINTERRUPTIBLE,
	COLUMN_RUNNABLE,
	COLUMN_IDLE,
	COLUMNS,
};

static const char *const column_names[COLUMNS] = {"total",   "on CPU",    "share",   "waits", "average", "longest",
						  "blocked", "uninterr.", "for CPU", "idle"};

enum { CELL_LEN = DURATION_LEN };
static_assert((int)CELL_LEN >= (int)SHARE_LEN, "a cell holds a share");

/* Empty for zero, so that the other values stand out. */
static void format_part(const struct offcpu_thread *thread, uint64_t ns, char buf[CELL_LEN])
{
	*buf = '\0';
	if (ns)
		offcpu_format_share(ns, thread->sum.total_ns, buf);
}

static void format_cell(const struct offcpu_text *r, const struct offcpu_thread *thread, enum column column,
			char buf[CELL_LEN])
{
	switch (column) {
	case COLUMN_TOTAL:
		offcpu_format_wait(thread->sum.total_ns, buf);
		break;
	case COLUMN_ON_CPU:
		*buf = '\0';
		if (thread->on_cpu_ns)
			offcpu_format_wait(thread->on_cpu_ns, buf);
		break;
	case COLUMN_SHARE:
		offcpu_format_share(thread->sum.total_ns, r->profile->total.total_ns, buf);
		break;
	case COLUMN_WAITS:
		snprintf(buf, CELL_LEN, "%" PRIu64, thread->sum.count);
		break;
	case COLUMN_AVERAGE:
		offcpu_format_wait(offcpu_average(&thread->sum), buf);
		break;
	case COLUMN_LONGEST:
		offcpu_format_wait(thread->sum.max_ns, buf);
		break;
	case COLUMN_BLOCKED:
		format_part(thread, thread->sleeping_ns, buf);
		break;
	case COLUMN_UNINTERRUPTIBLE:
		format_part(thread, thread->uninterruptible_ns, buf);
		break;
	case COLUMN_RUNNABLE:
		format_part(thread, thread->runnable_ns, buf);
		break;
	case COLUMN_IDLE:
		format_part(thread, thread->idle_ns, buf);
		break;
	case COLUMNS:
		break;
	}
}

/* Continuation bytes of UTF-8 take no column. */
static int width_of(const char *s)
{
	int width = 0;

	for (; *s; s++)
		width += ((unsigned char)*s & 0xc0) != 0x80;
	return width;
}

/* 0: the column is empty and left out. */
static void find_widths(const struct offcpu_text *r, const struct table *table, size_t n, int widths[COLUMNS])
{
	char cell[CELL_LEN];

	for (int column = 0; column < COLUMNS; column++) {
		int widest = 0;

		for (size_t i = 0; i < n; i++) {
			int width;

			format_cell(r, &table->data[i].thread, column, cell);
			width = width_of(cell);
			widest = width > widest ? width : widest;
		}
		widths[column] =
			widest && widest < width_of(column_names[column]) ? width_of(column_names[column]) : widest;
	}
}

enum { LEAST_WHO = 28 }; /* columns for who it is, where lines have to fit */

static size_t columns_left(const struct offcpu_text *r, const int widths[COLUMNS])
{
	size_t used = 2;

	for (int column = 0; column < COLUMNS; column++)
		used += widths[column] ? (size_t)widths[column] + 2 : 0;
	return r->options->width > used ? r->options->width - used : 0;
}

/* On a narrow terminal: first goes what the others tell as well, then what is read least. */
static void drop_columns(const struct offcpu_text *r, int widths[COLUMNS])
{
	static const enum column order[] = {COLUMN_SHARE,           COLUMN_BLOCKED, COLUMN_AVERAGE, COLUMN_ON_CPU,
					    COLUMN_UNINTERRUPTIBLE, COLUMN_RUNNABLE, COLUMN_IDLE,    COLUMN_LONGEST};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && columns_left(r, widths) < LEAST_WHO; i++)
		widths[order[i]] = 0;
}

static void put_cell(FILE *out, int width, const char *s)
{
	if (width)
		fprintf(out, "  %*s%s", width - width_of(s), "", s);
}

static void put_line(const struct offcpu_text *r, const struct line *line, const int widths[COLUMNS])
{
	const struct offcpu_thread *thread = &line->thread;
	const struct offcpu_who who = {
		.pid = thread->pid,
		.start_ns = thread->process_start_ns,
		.tid = line->nprocesses ? 0 : thread->tid,
		.nth = thread->nth,
		.name = thread->name,
		.columns = columns_left(r, widths),
	};
	char cell[CELL_LEN];
	FILE *out = r->text.out;

	for (int column = 0; column < COLUMNS; column++) {
		format_cell(r, thread, column, cell);
		put_cell(out, widths[column], cell);
	}
	fputs("  ", out);
	if (line->nprocesses > 1) {
		offcpu_put_program(r, &who, line->nprocesses, line->nthreads);
	} else if (!line->nmembers) {
		offcpu_put_who(r, &who);
		if (line->nprocesses && line->nthreads > 1)
			fprintf(out, ", %zu threads", line->nthreads);
	} else {
		fprintf(out, "%zu threads: ", line->nmembers);
		offcpu_put_members(r, line->members, line->nmembers, false);
		if (!r->pid && line->members[0].row->pid == line->members[line->nmembers - 1].row->pid)
			fprintf(out, " (pid %d)", thread->pid);
	}
	fputc('\n', out);
}

static void put_table(const struct offcpu_text *r, const struct table *table, size_t n)
{
	int widths[COLUMNS];
	FILE *out = r->text.out;

	find_widths(r, table, n, widths);
	if (r->options->width)
		drop_columns(r, widths);
	fputc('\n', out);
	text_style(&r->text, STYLE_DIM);
	for (int column = 0; column < COLUMNS; column++)
		put_cell(out, widths[column], column_names[column]);
	fputs(r->profile->by_process ? "  process" : "  thread", out);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', out);
	for (size_t i = 0; i < n; i++)
		put_line(r, &table->data[i], widths);
}

bool offcpu_put_threads(const struct offcpu_text *r)
{
	_cleanup_(table_deinit) struct table table = {0};
	uint64_t rest_ns = 0, hidden_ns = 0;
	const bool by_process = r->profile->by_process;
	size_t n, rest = 0, hidden = r->profile->threads.len;

	if (!r->profile->threads.len)
		return true;
	if (!find_lines(r, &table))
		return false;
	n = offcpu_shown(r, SHOWN_THREADS, table.len);
	if (n)
		put_table(r, &table, n);
	else
		fputc('\n', r->text.out);
	for (size_t i = 0; i < r->profile->threads.len; i++)
		hidden_ns += r->profile->threads.data[i].sum.total_ns;
	for (size_t i = 0; i < table.len; i++) {
		const struct line *line = &table.data[i];

		hidden_ns -= line->thread.sum.total_ns;
		hidden -= line->nthreads;
		rest_ns += i < n ? 0 : line->thread.sum.total_ns;
		rest += i < n ? 0 : by_process ? line->nprocesses : line->nthreads;
	}
	offcpu_put_rest(r, rest, by_process ? "more process" : "more thread", by_process ? "more processes" : "more threads",
			rest_ns, ": -v shows all");
	offcpu_put_rest(r, hidden, "idle thread hidden", "idle threads hidden", hidden_ns, "");
	return true;
}
