/* SPDX-License-Identifier: MIT */
#include "report/offcpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "report/lacking.h"
#include "report/names.h"
#include "report/offcpu_totals.h"
#include "report/report.h"
#include "report/text_format.h"
#include "report/text_frame.h"

/* The heaviest are what is read; -v shows the rest. */
enum { SHOWN_THREADS = 50, SHOWN_STACKS = 100 };

struct offcpu_text {
	struct text text;
	const struct offcpu_report_options *options;
	const struct offcpu_profile *profile;
	struct offcpu_totals totals;
};

/* A thread of the table, and how much of its time was idle. */
struct line {
	const struct offcpu_thread *thread;
	uint64_t idle_ns;
};

struct lines {
	VEC_FIELDS(struct line);
};

static void lines_deinit(struct lines *lines)
{
	vec_deinit(lines);
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

/* Right-aligned; what continues a UTF-8 character takes no column. */
static void put_cell(FILE *out, int width, const char *s)
{
	int columns = 0;

	for (const char *p = s; *p; p++)
		columns += ((unsigned char)*p & 0xc0) != 0x80;
	fprintf(out, "  %*s%s", columns < width ? width - columns : 0, "", s);
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
	if (sum->count)
		fprintf(out, ", average %s, longest %s", format_wait(offcpu_average(sum), average),
			format_wait(sum->max_ns, longest));
}

static void put_method(const struct offcpu_text *r)
{
	fputs("; method ", r->text.out);
	text_untrusted(&r->text, r->profile->method ? r->profile->method : "?");
	if (!r->profile->estimate)
		return;
	text_style(&r->text, STYLE_BAD);
	fputs(", an estimate", r->text.out);
	text_style(&r->text, STYLE_PLAIN);
}

static void put_summary(const struct offcpu_text *r)
{
	const struct offcpu_profile *profile = r->profile;
	size_t n = profile->threads.len;
	char time[DURATION_LEN];
	FILE *out = r->text.out;

	fprintf(out, "stakeout offcpu: %s, %zu %s", format_wait(profile->duration_ns, time), n,
		n == 1 ? "thread" : "threads");
	put_method(r);
	fprintf(out, "\noff-CPU %s: ", format_wait(profile->total.total_ns, time));
	put_waits(out, &profile->total);
	fputc('\n', out);
	if (!profile->total.count)
		return;
	put_part(r, "  ", "blocked", r->totals.sleeping_ns);
	put_part(r, ", ", "uninterruptible", r->totals.uninterruptible_ns);
	put_part(r, ", ", "waiting for a CPU", r->totals.runnable_ns);
	if (r->totals.idle_rows)
		put_part(r, "; ", "idle", r->totals.idle_ns);
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
	fprintf(r->text.out, "  %s %d ", tid ? "tid" : "pid", tid ? tid : pid);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, name && *name ? name : "?");
	text_style(&r->text, STYLE_PLAIN);
	if (tid && tid != pid)
		fprintf(r->text.out, " (pid %d)", pid);
}

static uint64_t thread_key(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

/* Adds up the idle time by thread. */
static bool find_idle(const struct offcpu_profile *profile, struct u64map *idle)
{
	for (size_t i = 0; i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];
		uint64_t *ns;
		bool created;

		if (!row->idle)
			continue;
		ns = u64map_put(idle, thread_key(row->pid, row->tid), &created);
		if (!ns)
			return false;
		*ns = row->sum.total_ns + (created ? 0 : *ns);
	}
	return true;
}

static uint64_t active_ns(const struct line *line)
{
	uint64_t total = line->thread->sum.total_ns;

	return total > line->idle_ns ? total - line->idle_ns : 0;
}

static int by_falling_active_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	uint64_t active_x = active_ns(x), active_y = active_ns(y);

	if (active_x != active_y)
		return active_x < active_y ? 1 : -1;
	return x->thread < y->thread ? -1 : x->thread > y->thread; /* as they were */
}

/* With --hide-idle: those that do more than idle, by the time that they did. */
static bool find_lines(const struct offcpu_text *r, struct lines *lines)
{
	_cleanup_(u64map_deinit) struct u64map idle = {0};

	if (!find_idle(r->profile, &idle))
		return false;
	for (size_t i = 0; i < r->profile->threads.len; i++) {
		const struct offcpu_thread *thread = &r->profile->threads.data[i];
		const uint64_t *ns = u64map_find(&idle, thread_key(thread->pid, thread->tid));
		const struct line line = {.thread = thread, .idle_ns = ns ? *ns : 0};

		if (r->options->hide_idle && line.idle_ns && !active_ns(&line))
			continue;
		if (!vec_push(lines, line))
			return false;
	}
	if (r->options->hide_idle && lines->len)
		qsort(lines->data, lines->len, sizeof(*lines->data), by_falling_active_time);
	return true;
}

static void put_thread(const struct offcpu_text *r, const struct line *line)
{
	const struct offcpu_thread *thread = line->thread;
	const struct offcpu_sum *sum = &thread->sum;
	char time[DURATION_LEN], share[SHARE_LEN], count[24];
	FILE *out = r->text.out;

	snprintf(count, sizeof(count), "%" PRIu64, sum->count);
	put_cell(out, 8, format_wait(sum->total_ns, time));
	put_cell(out, 7, format_share(sum->total_ns, r->profile->total.total_ns, share));
	put_cell(out, 8, count);
	put_cell(out, 8, format_wait(offcpu_average(sum), time));
	put_cell(out, 8, format_wait(sum->max_ns, time));
	put_cell(out, 7, format_share(thread->sleeping_ns, sum->total_ns, share));
	put_cell(out, 9, format_share(thread->uninterruptible_ns, sum->total_ns, share));
	put_cell(out, 7, format_share(thread->runnable_ns, sum->total_ns, share));
	put_cell(out, 7, line->idle_ns ? format_share(line->idle_ns, sum->total_ns, share) : "");
	put_who(r, thread->pid, thread->tid, thread->name);
	fputc('\n', out);
}

/* What is not shown, and how much that is. */
static void put_rest(const struct offcpu_text *r, const char *what, size_t n, uint64_t ns)
{
	text_style(&r->text, STYLE_DIM);
	fprintf(r->text.out, "  %s: %zu", what, n);
	put_part(r, ", ", "with", ns);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

static uint64_t all_threads_ns(const struct offcpu_profile *profile)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < profile->threads.len; i++)
		ns += profile->threads.data[i].sum.total_ns;
	return ns;
}

static void put_threads(const struct offcpu_text *r, const struct lines *lines)
{
	size_t shown = r->options->verbose || lines->len < SHOWN_THREADS ? lines->len : SHOWN_THREADS;
	uint64_t shown_ns = 0, lines_ns = 0;

	if (!r->profile->threads.len)
		return;
	text_style(&r->text, STYLE_DIM);
	fputs("\n     total    share     waits   average   longest  blocked  uninterr.  for CPU     idle  thread\n",
	      r->text.out);
	text_style(&r->text, STYLE_PLAIN);
	for (size_t i = 0; i < lines->len; i++) {
		uint64_t ns = lines->data[i].thread->sum.total_ns;

		lines_ns += ns;
		if (i >= shown)
			continue;
		shown_ns += ns;
		put_thread(r, &lines->data[i]);
	}
	if (shown < lines->len)
		put_rest(r, "further threads, shown with -v", lines->len - shown, lines_ns - shown_ns);
	if (lines->len < r->profile->threads.len)
		put_rest(r, "hidden idle threads", r->profile->threads.len - lines->len,
			 all_threads_ns(r->profile) - lines_ns);
}

/* The stacks. */

static void put_state(const struct offcpu_text *r, char state)
{
	enum style style = state == 'R' ? STYLE_GOOD : state == 'D' ? STYLE_BAD : STYLE_PLAIN;

	fputs("  ", r->text.out);
	if (style != STYLE_PLAIN)
		text_style(&r->text, style);
	fprintf(r->text.out, "%c %s", state > ' ' && state < 0x7f ? state : '?',
		state == 'R' ? "waiting for a CPU" : name_thread_state(state));
	if (style != STYLE_PLAIN)
		text_style(&r->text, STYLE_PLAIN);
}

static void put_head(const struct offcpu_text *r, const struct offcpu_row *row)
{
	char time[DURATION_LEN], share[SHARE_LEN];
	FILE *out = r->text.out;

	fputc('\n', out);
	text_style(&r->text, STYLE_STRONG);
	fputs(format_wait(row->sum.total_ns, time), out);
	text_style(&r->text, STYLE_PLAIN);
	fprintf(out, "  %s", format_share(row->sum.total_ns, r->profile->total.total_ns, share));
	put_who(r, row->pid, row->tid, row->thread_name);
	put_state(r, row->state);
	fputs("  ", out);
	put_waits(out, &row->sum);
	if (row->sum.runnable_ns && row->state != 'R')
		fprintf(out, ", %s of it waiting for a CPU", format_wait(row->sum.runnable_ns, time));
	fputs(row->idle ? "  [idle]\n" : "\n", out);
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
static void put_end(const struct offcpu_text *r, bool has_frames, const char *what, const char *why)
{
	if (!why)
		return;
	text_style(&r->text, has_frames ? STYLE_BAD : STYLE_DIM);
	if (has_frames)
		fprintf(r->text.out, "  -- %s ends here: ", what);
	else
		fprintf(r->text.out, "  -- no %s: ", what);
	text_untrusted(&r->text, why);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

static void put_waker(const struct offcpu_text *r, const struct offcpu_waker *waker)
{
	fputs("  woken by:", r->text.out);
	put_who(r, waker->pid, waker->tid, waker->name);
	fputc('\n', r->text.out);
	put_kernel_stack(r, "  ", waker->kernel);
	put_user_stack(r, "  ", waker->user);
}

static void put_row(const struct offcpu_text *r, const struct offcpu_row *row)
{
	bool kernel, user;

	put_head(r, row);
	kernel = put_kernel_stack(r, "", row->kernel);
	put_end(r, kernel, "kernel stack", row->kernel_error);
	user = put_user_stack(r, "", row->user);
	put_end(r, user, "user stack", row->user_error);
	if (!kernel && !user && !row->kernel_error && !row->user_error)
		put_end(r, false, "stack", "none was taken");
	if (row->has_waker)
		put_waker(r, &row->waker);
}

static void put_rows(const struct offcpu_text *r)
{
	size_t shown = 0, rest = 0;
	uint64_t rest_ns = 0;
	bool hide = r->options->hide_idle;

	for (size_t i = 0; i < r->profile->rows.len; i++) {
		const struct offcpu_row *row = &r->profile->rows.data[i];

		if (row->idle && hide)
			continue;
		if (r->options->verbose || shown < SHOWN_STACKS) {
			put_row(r, row);
			shown++;
		} else {
			rest++;
			rest_ns += row->sum.total_ns;
		}
	}
	if (rest || (hide && r->totals.idle_rows))
		fputc('\n', r->text.out);
	if (rest)
		put_rest(r, "further stacks, shown with -v", rest, rest_ns);
	if (hide && r->totals.idle_rows)
		put_rest(r, "hidden idle stacks", r->totals.idle_rows, r->totals.idle_ns);
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

	if (!find_lines(&r, &lines) || !lacking_find_offcpu(&lacking, profile, options->hide_idle))
		return -ENOMEM;
	put_summary(&r);
	put_losses(&r);
	for (size_t i = 0; i < profile->notes.len; i++)
		text_note(&r.text, "", profile->notes.data[i]);
	put_threads(&r, &lines);
	put_rows(&r);
	text_lacking(&r.text, &lacking);
	return report_flush(out);
}
