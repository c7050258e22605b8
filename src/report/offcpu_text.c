/* SPDX-License-Identifier: MIT */
#include "report/offcpu.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "report/lacking.h"
#include "report/names.h"
#include "report/offcpu_groups.h"
#include "report/offcpu_totals.h"
#include "report/report.h"
#include "report/text_format.h"
#include "report/text_frame.h"

/* The heaviest are what is read; --top shows more or less, -v all. */
enum { SHOWN_THREADS = 20, SHOWN_STACKS = 50, SHOWN_WAKERS = 3 };

struct offcpu_text {
	struct text text;
	const struct offcpu_report_options *options;
	const struct offcpu_profile *profile;
	struct offcpu_totals totals;
	size_t processes;
	pid_t pid; /* of the only process; 0: there are more */
};

/* The threads of the table. */
struct lines {
	VEC_FIELDS(const struct offcpu_thread *);
};

static void lines_deinit(struct lines *lines)
{
	vec_deinit(lines);
}

static bool count_processes(struct offcpu_text *r)
{
	_cleanup_(u64map_deinit) struct u64map pids = {0};
	bool created;

	for (size_t i = 0; i < r->profile->threads.len; i++) {
		r->pid = r->profile->threads.data[i].pid;
		if (!u64map_put(&pids, (uint32_t)r->pid, &created))
			return false;
	}
	r->processes = pids.len;
	if (r->processes != 1)
		r->pid = 0;
	return true;
}

static size_t shown(const struct offcpu_text *r, size_t usual, size_t all)
{
	size_t most = r->options->verbose ? all : r->options->top ? r->options->top : usual;

	return most < all ? most : all;
}

/* Waits can be shorter than what else is measured here. */
static const char *format_wait(uint64_t ns, char buf[DURATION_LEN])
{
	if (ns >= 1000)
		return format_duration(ns, buf);
	snprintf(buf, DURATION_LEN, ns ? "%" PRIu64 " ns" : "0", ns);
	return buf;
}

enum { SHARE_LEN = 32 };

static const char *format_share(uint64_t part, uint64_t whole, char buf[SHARE_LEN])
{
	uint64_t tenths = (offcpu_share(part, whole) + 50) / 100;

	snprintf(buf, SHARE_LEN, "%" PRIu64 ".%" PRIu64 " %%", tenths / 10, tenths % 10);
	return buf;
}

/* The first lines: what was recorded, and what the reader has to know about it. */

static void put_part(const struct offcpu_text *r, const char *prefix, const char *what, uint64_t ns)
{
	char time[DURATION_LEN], share[SHARE_LEN];

	fprintf(r->text.out, "%s%s %s (%s)", prefix, what, format_wait(ns, time),
		format_share(ns, r->profile->total.total_ns, share));
}

static void put_waits(FILE *out, const struct offcpu_sum *sum)
{
	char average[DURATION_LEN], longest[DURATION_LEN];

	fprintf(out, "%" PRIu64 " %s", sum->count, sum->count == 1 ? "wait" : "waits");
	if (sum->unfinished && sum->count == 1)
		fputs(", not over", out);
	else if (sum->unfinished)
		fprintf(out, ", %" PRIu64 " not over", sum->unfinished);
	if (sum->count > 1)
		fprintf(out, ", average %s, longest %s", format_wait(offcpu_average(sum), average),
			format_wait(sum->max_ns, longest));
}

static void put_method(const struct offcpu_text *r)
{
	fputs("; method ", r->text.out);
	text_untrusted(&r->text, r->profile->method ? r->profile->method : "?");
	if (r->profile->estimate) {
		text_style(&r->text, STYLE_BAD);
		fputs(", an estimate", r->text.out);
		text_style(&r->text, STYLE_PLAIN);
	}
	fputc('\n', r->text.out);
}

static void put_summary(const struct offcpu_text *r)
{
	const struct offcpu_profile *profile = r->profile;
	size_t n = profile->threads.len;
	char time[DURATION_LEN];
	FILE *out = r->text.out;

	fprintf(out, "stakeout offcpu: %s", format_wait(profile->duration_ns, time));
	if (n)
		fprintf(out, ", %zu %s of ", n, n == 1 ? "thread" : "threads");
	if (r->pid)
		fprintf(out, "pid %d", r->pid);
	else if (n)
		fprintf(out, "%zu processes", r->processes);
	put_method(r);
	if (!profile->total.count) {
		fputs("no waits, or none as long as is recorded: see --min\n", out);
		return;
	}
	fprintf(out, "off-CPU %s: ", format_wait(profile->total.total_ns, time));
	put_waits(out, &profile->total);
	put_part(r, "\n  ", "blocked", r->totals.sleeping_ns);
	put_part(r, ", ", "uninterruptible", r->totals.uninterruptible_ns);
	put_part(r, ",\n  ", "waiting for a CPU", r->totals.runnable_ns);
	if (r->totals.idle_rows)
		put_part(r, "; of all, ", "idle", r->totals.idle_ns);
	fputc('\n', out);
}

static void put_losses(const struct offcpu_text *r)
{
	bool any = false;

	for (size_t i = 0; i < r->profile->losses.len; i++) {
		const struct offcpu_loss *loss = &r->profile->losses.data[i];

		if (!loss->count)
			continue;
		if (!any)
			text_style(&r->text, STYLE_BAD);
		fprintf(r->text.out, "%s%" PRIu64 " ", any ? ", " : "lost: ", loss->count);
		text_untrusted(&r->text, loss->name);
		any = true;
	}
	if (!any)
		return;
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

/* The threads. */

static void put_who(const struct offcpu_text *r, pid_t pid, pid_t tid, const char *name)
{
	fprintf(r->text.out, "%s %d ", tid ? "tid" : "pid", tid ? tid : pid);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, name && *name ? name : "?");
	text_style(&r->text, STYLE_PLAIN);
	if (tid && tid != pid && pid != r->pid)
		fprintf(r->text.out, " (pid %d)", pid);
}

static uint64_t active_ns(const struct offcpu_thread *thread)
{
	return thread->sum.total_ns > thread->idle_ns ? thread->sum.total_ns - thread->idle_ns : 0;
}

static int by_falling_active_time(const void *a, const void *b)
{
	const struct offcpu_thread *x = *(const struct offcpu_thread *const *)a;
	const struct offcpu_thread *y = *(const struct offcpu_thread *const *)b;
	uint64_t active_x = active_ns(x), active_y = active_ns(y);

	if (active_x != active_y)
		return active_x < active_y ? 1 : -1;
	return x < y ? -1 : x > y; /* as they were */
}

/* With --hide-idle: those that do more than idle, by the time that they did. */
static bool find_lines(const struct offcpu_text *r, struct lines *lines)
{
	for (size_t i = 0; i < r->profile->threads.len; i++) {
		const struct offcpu_thread *thread = &r->profile->threads.data[i];

		if (r->options->hide_idle && offcpu_only_idles(thread))
			continue;
		if (!vec_push(lines, thread))
			return false;
	}
	if (r->options->hide_idle && lines->len)
		qsort(lines->data, lines->len, sizeof(*lines->data), by_falling_active_time);
	return true;
}

enum column {
	COLUMN_TOTAL,
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

static const char *const column_names[COLUMNS] = {"total",   "share",     "waits",   "average", "longest",
						  "blocked", "uninterr.", "for CPU", "idle"};

enum { CELL_LEN = DURATION_LEN };
static_assert((int)CELL_LEN >= (int)SHARE_LEN, "a cell holds a share");

/* Nothing where there was nothing: what is there is seen better then. */
static void format_part(const struct offcpu_thread *thread, uint64_t ns, char buf[CELL_LEN])
{
	*buf = '\0';
	if (ns)
		format_share(ns, thread->sum.total_ns, buf);
}

static void format_cell(const struct offcpu_text *r, const struct offcpu_thread *thread, enum column column,
			char buf[CELL_LEN])
{
	switch (column) {
	case COLUMN_TOTAL:
		format_wait(thread->sum.total_ns, buf);
		break;
	case COLUMN_SHARE:
		format_share(thread->sum.total_ns, r->profile->total.total_ns, buf);
		break;
	case COLUMN_WAITS:
		snprintf(buf, CELL_LEN, "%" PRIu64, thread->sum.count);
		break;
	case COLUMN_AVERAGE:
		format_wait(offcpu_average(&thread->sum), buf);
		break;
	case COLUMN_LONGEST:
		format_wait(thread->sum.max_ns, buf);
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

/* What continues a UTF-8 character takes no column. */
static int width_of(const char *s)
{
	int width = 0;

	for (; *s; s++)
		width += ((unsigned char)*s & 0xc0) != 0x80;
	return width;
}

/* 0: there is nothing in the column, and it is left out. */
static void find_widths(const struct offcpu_text *r, const struct lines *lines, size_t n, int widths[COLUMNS])
{
	char cell[CELL_LEN];

	for (int column = 0; column < COLUMNS; column++) {
		int widest = 0;

		for (size_t i = 0; i < n; i++) {
			int width;

			format_cell(r, lines->data[i], column, cell);
			width = width_of(cell);
			widest = width > widest ? width : widest;
		}
		widths[column] =
			widest && widest < width_of(column_names[column]) ? width_of(column_names[column]) : widest;
	}
}

static void put_cell(FILE *out, int width, const char *s)
{
	if (width)
		fprintf(out, "  %*s%s", width - width_of(s), "", s);
}

static void put_table(const struct offcpu_text *r, const struct lines *lines, size_t n)
{
	int widths[COLUMNS];
	char cell[CELL_LEN];
	FILE *out = r->text.out;

	find_widths(r, lines, n, widths);
	fputc('\n', out);
	text_style(&r->text, STYLE_DIM);
	for (int column = 0; column < COLUMNS; column++)
		put_cell(out, widths[column], column_names[column]);
	fputs("  thread", out);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', out);
	for (size_t i = 0; i < n; i++) {
		const struct offcpu_thread *thread = lines->data[i];

		for (int column = 0; column < COLUMNS; column++) {
			format_cell(r, thread, column, cell);
			put_cell(out, widths[column], cell);
		}
		fputs("  ", out);
		put_who(r, thread->pid, thread->tid, thread->name);
		fputc('\n', out);
	}
}

/* What is not shown, and how much that is. */
static void put_rest(const struct offcpu_text *r, size_t n, const char *one, const char *many, uint64_t ns,
		     const char *how)
{
	char time[DURATION_LEN], share[SHARE_LEN];

	if (!n)
		return;
	text_style(&r->text, STYLE_DIM);
	fprintf(r->text.out, "  %zu %s, %s of the time (%s)%s", n, n == 1 ? one : many,
		format_share(ns, r->profile->total.total_ns, share), format_wait(ns, time), how);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

static void put_threads(const struct offcpu_text *r, const struct lines *lines)
{
	const size_t n = shown(r, SHOWN_THREADS, lines->len);
	uint64_t rest_ns = 0, hidden_ns = 0;

	if (!r->profile->threads.len)
		return;
	if (n)
		put_table(r, lines, n);
	else
		fputc('\n', r->text.out);
	for (size_t i = 0; i < r->profile->threads.len; i++)
		hidden_ns += r->profile->threads.data[i].sum.total_ns;
	for (size_t i = 0; i < lines->len; i++) {
		hidden_ns -= lines->data[i]->sum.total_ns;
		rest_ns += i < n ? 0 : lines->data[i]->sum.total_ns;
	}
	put_rest(r, lines->len - n, "more thread", "more threads", rest_ns, ": -v shows all");
	put_rest(r, r->profile->threads.len - lines->len, "idle thread hidden", "idle threads hidden", hidden_ns, "");
}

/* The stacks. */

static void put_state(const struct offcpu_text *r, char state)
{
	enum style style = state == 'R' ? STYLE_GOOD : state == 'D' ? STYLE_BAD : STYLE_PLAIN;

	if (style != STYLE_PLAIN)
		text_style(&r->text, style);
	fprintf(r->text.out, "%c %s", state > ' ' && state < 0x7f ? state : '?',
		state == 'R' ? "waiting for a CPU" : name_thread_state(state));
	if (style != STYLE_PLAIN)
		text_style(&r->text, STYLE_PLAIN);
}

/* Two lines, since one would be too long for many terminals. */
static void put_head(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const struct offcpu_row *row = group->rows[0];
	const struct offcpu_sum *sum = &group->sum;
	char time[DURATION_LEN], share[SHARE_LEN];
	FILE *out = r->text.out;

	fputc('\n', out);
	text_style(&r->text, STYLE_STRONG);
	fputs(format_wait(sum->total_ns, time), out);
	text_style(&r->text, STYLE_PLAIN);
	fprintf(out, "  %s  ", format_share(sum->total_ns, r->profile->total.total_ns, share));
	put_who(r, row->pid, row->tid, row->thread_name);
	fputs("  ", out);
	put_state(r, row->state);
	fputs(group->idle ? "  [idle]\n  " : "\n  ", out);
	put_waits(out, sum);
	if (sum->runnable_ns && row->state != 'R')
		fprintf(out, ", %s of it waiting for a CPU", format_wait(sum->runnable_ns, time));
	fputc('\n', out);
}

static bool put_kernel_stack(const struct offcpu_text *r, const char *indent, const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->len; i++) {
		fputs(indent, r->text.out);
		text_kernel_frame(&r->text, &stack->data[i]);
	}
	return stack && stack->len;
}

static bool put_user_stack(const struct offcpu_text *r, const char *indent, const struct stack *stack)
{
	const struct frame_format format = {.verbose = r->options->verbose};

	for (size_t i = 0; stack && i < stack->len; i++) {
		fputs(indent, r->text.out);
		text_user_frame(&r->text, &format, &stack->data[i], i);
	}
	return stack && stack->len;
}

/* Why there is no stack, or why there is no more of it. */
static void put_end(const struct offcpu_text *r, const char *indent, bool has_frames, const char *what, const char *why)
{
	if (!why)
		return;
	text_style(&r->text, has_frames ? STYLE_BAD : STYLE_DIM);
	if (has_frames)
		fprintf(r->text.out, "%s  -- %s ends here: ", indent, what);
	else
		fprintf(r->text.out, "%s  -- no %s: ", indent, what);
	text_untrusted(&r->text, why);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

static void put_woken(const struct offcpu_text *r, const struct offcpu_sum *sum)
{
	char time[DURATION_LEN];

	fprintf(r->text.out, " (%" PRIu64 " %s, %s)\n", sum->count, sum->count == 1 ? "wait" : "waits",
		format_wait(sum->total_ns, time));
}

static void put_waker(const struct offcpu_text *r, const struct offcpu_row *row, bool alone)
{
	bool kernel, user;

	if (row->has_waker) {
		fputs("  woken by ", r->text.out);
		if (row->waker.tid)
			put_who(r, row->waker.pid, row->waker.tid, row->waker.name);
		else
			fputs("an interrupt", r->text.out);
	} else if (!alone) {
		fputs(row->sum.unfinished == row->sum.count ? "  not woken yet" : "  waker not known", r->text.out);
	}
	if (!alone)
		put_woken(r, &row->sum);
	else if (row->has_waker)
		fputc('\n', r->text.out);
	kernel = put_kernel_stack(r, "  ", row->waker.kernel);
	put_end(r, "  ", kernel, "kernel stack", row->waker.kernel_error);
	user = put_user_stack(r, "  ", row->waker.user);
	put_end(r, "  ", user, "user stack", row->waker.user_error);
}

/* A timer's interrupt hits whoever runs: there may be many, and only the first few tell something. */
static void put_wakers(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const size_t n = r->options->verbose || group->nrows < SHOWN_WAKERS ? group->nrows : SHOWN_WAKERS;
	struct offcpu_sum rest = {0};

	for (size_t i = 0; i < n; i++)
		put_waker(r, group->rows[i], group->nrows == 1);
	for (size_t i = n; i < group->nrows; i++)
		offcpu_sum_merge(&rest, &group->rows[i]->sum);
	if (!rest.count)
		return;
	fprintf(r->text.out, "  woken by %zu more", group->nrows - n);
	put_woken(r, &rest);
}

static void put_group(const struct offcpu_text *r, const struct offcpu_group *group)
{
	const struct offcpu_row *row = group->rows[0];
	bool kernel, user;

	put_head(r, group);
	kernel = put_kernel_stack(r, "", row->kernel);
	put_end(r, "", kernel, "kernel stack", row->kernel_error);
	user = put_user_stack(r, "", row->user);
	put_end(r, "", user, "user stack", row->user_error);
	if (!kernel && !user && !row->kernel_error && !row->user_error)
		put_end(r, "", false, "stack", "none was taken");
	put_wakers(r, group);
}

static void put_groups(const struct offcpu_text *r, const struct offcpu_groups *groups)
{
	const size_t n = shown(r, SHOWN_STACKS, groups->len);
	uint64_t rest_ns = 0, hidden_ns = 0;
	size_t done = 0, rest = 0, hidden = 0;

	for (size_t i = 0; i < groups->len; i++) {
		const struct offcpu_group *group = &groups->data[i];

		if (group->idle && r->options->hide_idle) {
			hidden++;
			hidden_ns += group->sum.total_ns;
		} else if (done < n) {
			put_group(r, group);
			done++;
		} else {
			rest++;
			rest_ns += group->sum.total_ns;
		}
	}
	if (rest || hidden)
		fputc('\n', r->text.out);
	put_rest(r, rest, "more stack", "more stacks", rest_ns, ": -v shows all");
	put_rest(r, hidden, "idle stack hidden", "idle stacks hidden", hidden_ns, "");
}

int report_offcpu_text(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out)
{
	struct offcpu_text r = {
		.text = {.out = out, .color = options->color},
		.options = options,
		.profile = profile,
		.totals = offcpu_totals(profile),
	};
	_cleanup_(lacking_deinit) struct lacking lacking = {0};
	_cleanup_(lines_deinit) struct lines lines = {0};
	_cleanup_(offcpu_groups_deinit) struct offcpu_groups groups = {0};

	if (!count_processes(&r) || !find_lines(&r, &lines) || !offcpu_groups_find(&groups, profile) ||
	    !lacking_find_offcpu(&lacking, profile, options->hide_idle))
		return -ENOMEM;
	put_summary(&r);
	put_losses(&r);
	for (size_t i = 0; i < profile->notes.len; i++)
		text_note(&r.text, "", profile->notes.data[i]);
	put_threads(&r, &lines);
	put_groups(&r, &groups);
	text_lacking(&r.text, &lacking);
	return report_flush(out);
}
