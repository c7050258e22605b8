/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/order.h"
#include "report/group.h"
#include "report/lacking.h"
#include "report/names.h"
#include "report/shorten.h"
#include "report/task_groups.h"
#include "report/text_format.h"
#include "report/text_frame.h"
#include "report/text_hint.h"
#include "report/text_summary.h"
#include "report/text_syscall.h"
#include "report/text_table.h"
#include "report/text_tasks.h"
#include "report/times.h"
#include "report/descriptor_words.h"
#include "report/wait_words.h"
#include "report/why_words.h"
#include "report/wrap.h"

enum {
	LINE_WIDTH = 100, /* of lists, where the terminal has no other */
	INDENT = 5,       /* "  in " */
	TID_RUN = 16,     /* so many consecutive tids with one name are shown as a range */
};

struct text_report {
	struct text text;
	const struct report_options *options;
	const struct trace *const *traces;
	size_t ntraces;
	const struct deadlocks *deadlocks;
	bool several; /* processes: threads are named with theirs */
};

/* The head of a block: who, in which state, since when, in which system call. */

/* Since when one that is ready waits for a CPU is not known. */
static int64_t ready_time(const struct snap_thread *thread)
{
	return thread_is_ready(thread) ? thread->off_cpu_ns : -1;
}

static int64_t cpu_time(const struct snap_thread *thread)
{
	return thread->cpu_ns;
}

static void put_pause(FILE *out, const struct trace_thread *const *members, size_t count)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t ns = members[i]->thread->pause_ns;

		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	times_put_range(out, "  held ", "", least, most);
}

static bool is_same_runtime(const struct thread_runtime *a, const struct thread_runtime *b)
{
	return same_text(a->runtime, b->runtime) && same_text(a->state, b->state) && a->is_daemon == b->is_daemon &&
	       a->holds_gil == b->holds_gil && a->waits_for_gil == b->waits_for_gil;
}

/* What a runtime knows of the members, if it is the same of all. */
static void put_runtime(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct thread_runtime *runtime = &members[0]->runtime;

	for (size_t i = 1; i < count; i++)
		if (!is_same_runtime(runtime, &members[i]->runtime))
			return;
	if (!runtime->runtime)
		return;
	if (runtime->state) {
		fputs("  ", r->text.out);
		text_untrusted(&r->text, runtime->state);
	}
	fputs(runtime->is_daemon ? "  daemon" : "", r->text.out);
	fputs(runtime->holds_gil ? "  holds the GIL" : runtime->waits_for_gil ? "  waits for the GIL" : "", r->text.out);
}

static void put_situation(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct snap_thread *first = members[0]->thread;
	FILE *out = r->text.out;

	fputs("  ", out);
	text_state(&r->text, first, 0);
	put_runtime(r, members, count);
	times_put(out, "  off-CPU ", "", members, count, time_off_cpu);
	times_put(out, "  last ran ", " ago", members, count, ready_time);
	times_put(out, "  CPU time ", "", members, count, cpu_time);
	if (first->capture == CAPTURE_HELD)
		put_pause(out, members, count);
	if (first->capture == CAPTURE_MOVED)
		fputs("  ran during the capture: may be torn", out);
	if (first->tracer)
		fprintf(out, "  traced by pid %d", first->tracer);
	fputc('\n', out);
}

/* What it is for, if that is the same for all. */
static void put_wait(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct wait *wait = &members[0]->wait;

	for (size_t i = 1; i < count; i++)
		if (wait_compare(members[0], members[i]) != 0)
			return;
	if (wait->kind == WAIT_NOTHING || wait->kind == WAIT_FUTEX)
		return;
	fputs("  ", r->text.out);
	wait_put_doing(&r->text, members, count);
	wait_put_holder(&r->text, members, count, r->traces, r->ntraces);
	fputc('\n', r->text.out);
	if (r->options->verbose && wait->kind == WAIT_EVENTS)
		descriptor_put_set(&r->text, members[0], "    ");
}

/* A thread that is ready is not blocked there. */
static void put_syscall(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct snap_thread *first = members[0]->thread;
	unsigned width = r->options->width;

	if (first->syscall.state != SYSCALL_IN)
		return;
	fputs(first->state == 'R' ? "  during " : "  in ", r->text.out);
	text_style(&r->text, STYLE_CALL);
	text_syscall(&r->text, members, count, width > INDENT ? width - INDENT : width);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

/* How many members from here on have the same name and, with `consecutive`, consecutive tids. */
static size_t run_length(const struct trace_thread *const *members, size_t count, bool consecutive)
{
	size_t n = 1;

	while (n < count && strcmp(trace_thread_name(members[n]), trace_thread_name(members[0])) == 0 &&
	       (!consecutive || members[n]->thread->tid == members[0]->thread->tid + (pid_t)n))
		n++;
	return n;
}

static void put_word(const struct text_report *r, int *column, int len, const char *indent)
{
	int width = r->options->width ? (int)r->options->width : LINE_WIDTH;

	if (*column + 1 + len > width) {
		fprintf(r->text.out, "\n%s", indent);
		*column = (int)strlen(indent);
	}
	fputc(' ', r->text.out);
	*column += 1 + len;
}

static void put_tids(const struct text_report *r, const struct trace_thread *const *members, size_t count, int *column)
{
	char word[32];

	for (size_t i = 0, n; i < count; i += n) {
		pid_t tid = members[i]->thread->tid, pid = members[i]->snap->pid;

		n = run_length(members + i, count - i, true);
		if (n < TID_RUN || r->several)
			n = 1;
		if (n > 1)
			snprintf(word, sizeof(word), "%d-%d", tid, tid + (pid_t)n - 1);
		else if (r->several && tid != pid)
			snprintf(word, sizeof(word), "%d:%d", pid, tid);
		else
			snprintf(word, sizeof(word), "%d", tid);
		put_word(r, column, (int)strlen(word), "     ");
		fputs(word, r->text.out);
	}
}

/* "  tid 4712 4713 worker, 4714 flusher", wrapped; PID:TID where there are several processes. */
static void put_members(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	FILE *out = r->text.out;
	int column = 5;

	fputs("  tid", out);
	for (size_t i = 0, n; i < count; i += n) {
		const char *name = trace_thread_name(members[i]);

		n = run_length(members + i, count - i, false);
		put_tids(r, members + i, n, &column);
		put_word(r, &column, (int)strlen(name) + 1, "     ");
		text_style(&r->text, STYLE_STRONG);
		text_untrusted(&r->text, name);
		text_style(&r->text, STYLE_PLAIN);
		if (i + n < count)
			fputc(',', out);
	}
	fputc('\n', out);
}

static void put_tid(FILE *out, const struct snap_thread *thread)
{
	fprintf(out, "\ntid %d ", (int)thread->tid);
	if (thread->inner_tid)
		fprintf(out, "(%d in its namespace) ", (int)thread->inner_tid);
}

static void put_head(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct snap_thread *first = members[0]->thread;

	if (count == 1)
		put_tid(r->text.out, first);
	else
		fputc('\n', r->text.out);
	text_style(&r->text, STYLE_STRONG);
	if (count == 1)
		text_untrusted(&r->text, trace_thread_name(members[0]));
	else
		fprintf(r->text.out, "%zu threads", count);
	text_style(&r->text, STYLE_PLAIN);
	if (count == 1 && r->several && first->tid != members[0]->snap->pid)
		fprintf(r->text.out, " (pid %d)", (int)members[0]->snap->pid);
	put_situation(r, members, count);
	if (count > 1)
		put_members(r, members, count);
	put_syscall(r, members, count);
	put_wait(r, members, count);
}

/* The body: registers and stacks. */

static void put_registers(const struct text_report *r, const struct trace_thread *thread)
{
	const struct arch *arch = thread->snap->arch;
	const struct user_regs *regs = &thread->thread->regs;
	enum { REG_COLUMNS = 2 + 8 + 1 + 18, MOST_IN_LINE = 4 };
	const unsigned width = r->options->width, fitting = width ? width / REG_COLUMNS : MOST_IN_LINE;
	const unsigned in_line = fitting > MOST_IN_LINE ? MOST_IN_LINE : fitting ? fitting : 1;
	unsigned shown = 0;

	for (unsigned i = 0; i < arch->nuser_regs; i++) {
		if (!(regs->valid >> i & 1))
			continue;
		fprintf(r->text.out, "  %8s 0x%016" PRIx64, arch->user_reg_names[i], regs->v[i]);
		if (++shown % in_line == 0)
			fputc('\n', r->text.out);
	}
	if (shown % in_line)
		fputc('\n', r->text.out);
}

/* Why there is no stack, or why it ends here. */
static void put_end(const struct text_report *r, const struct trace_thread *t)
{
	const struct raw_stack *raw = &t->raw;
	const char *why = t->thread->why ? t->thread->why : raw->error;
	FILE *out = r->text.out;

	if (t->runtime.problem) {
		fprintf(out, "  -- no frames of %s: ", t->runtime.runtime ? t->runtime.runtime : "its runtime");
		text_untrusted(&r->text, t->runtime.problem);
		fputc('\n', out);
	}
	if (raw->end == STACK_COMPLETE)
		return;
	text_style(&r->text, trace_thread_is_complete(t) ? STYLE_DIM : STYLE_BAD);
	if (raw->end == STACK_NOT_CAPTURED)
		fputs("  -- no user stack", out);
	else if (raw->end == STACK_DOUBTFUL)
		fputs("  -- ", out);
	else if (raw->end == STACK_DEPTH_LIMIT && !raw->end_pc)
		fprintf(out, "  -- not all is shown: %s", stack_end_name(raw->end));
	else
		fprintf(out, "  -- stack ends here: %s at 0x%" PRIx64, stack_end_name(raw->end), raw->end_pc);
	if (*why) {
		bool ends_here = raw->end != STACK_NOT_CAPTURED && raw->end != STACK_DOUBTFUL;

		fputs(ends_here ? " (" : raw->end == STACK_NOT_CAPTURED ? ": " : "", out);
		text_untrusted(&r->text, why);
		fputs(ends_here ? ")" : "", out);
	}
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', out);
}

static void put_group(const struct text_report *r, const struct trace_thread *const *members, size_t count)
{
	const struct trace_thread *first = members[0];
	const struct frame_format format = {
		.verbose = r->options->verbose,
		.no_addresses = r->options->no_addresses,
		.raw = r->options->show_sp ? &first->raw : NULL,
		.width = r->options->width,
	};

	put_head(r, members, count);
	if (r->options->registers)
		put_registers(r, first);
	if (r->options->kernel)
		text_kernel_stack(&r->text, &format, first->kernel);
	text_user_stack(&r->text, &format, first->user);
	put_end(r, first);
}

/* How many lines the blocks take, at least. */
static size_t count_lines(const struct text_report *r, const struct groups *groups)
{
	size_t n = 0;

	for (size_t i = 0; i < groups->len; i++) {
		const struct trace_thread *first = groups->members[groups->data[i].first];

		n += 3 + (first->user ? first->user->len : 0);
		n += r->options->kernel && first->kernel ? first->kernel->len : 0;
	}
	return n;
}

/* A line each: who is in it. */
static void put_deadlocks(const struct text_report *r)
{
	enum { MOST_NAMED = 8 };

	for (size_t i = 0; i < r->deadlocks->len; i++) {
		const struct deadlock *d = &r->deadlocks->data[i];

		fputs(i ? "" : "\n", r->text.out);
		why_put_headline(&r->text, d);
		for (size_t k = 0; k < d->len && k < MOST_NAMED; k++) {
			fprintf(r->text.out, "%s %d ", k ? "," : ": tid", (int)d->data[k]->thread->tid);
			text_untrusted(&r->text, trace_thread_name(d->data[k]));
		}
		fputs(d->len > MOST_NAMED ? ", … (stakeout why)\n" : " (stakeout why)\n", r->text.out);
	}
}

static int put_all(const struct text_report *r, const struct groups *groups, const struct task_groups *tasks)
{
	const struct trace *const *traces = r->traces;
	const size_t n = r->ntraces;
	enum { SCREENFUL = 50 };
	_cleanup_(lacking_deinit) struct lacking lacking = {0};
	const struct report_options *options = r->options;
	size_t fits = options->height ? options->height : SCREENFUL;

	for (size_t i = 0; i < n; i++)
		if (!lacking_find(&lacking, traces[i]))
			return -ENOMEM;
	report_begin();
	text_summary(&r->text, options, traces, n);
	put_deadlocks(r);
	if (options->brief || (groups->len + tasks->len > 1 && count_lines(r, groups) + text_tasks_lines(tasks) > fits)) {
		text_table(&r->text, groups, options->width);
		text_tasks_table(&r->text, tasks, options->width, r->several);
	}
	if (options->brief)
		return report_flush(r->text.out);
	for (size_t i = 0; i < groups->len; i++)
		put_group(r, groups->members + groups->data[i].first, groups->data[i].count);
	text_tasks(&r->text, tasks, options, r->several);
	text_hints(&r->text, traces, n);
	text_lacking(&r->text, &lacking);
	return report_flush(r->text.out);
}

static int write_to(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out)
{
	const struct text_report r = {
		.text = {.out = out, .color = options->color},
		.options = options,
		.traces = traces,
		.ntraces = n,
		.deadlocks = deadlocks,
		.several = n > 1,
	};
	/* Registers and stack pointers differ between threads, so nothing can be merged. */
	bool merge = options->brief || (options->group && !options->registers && !options->show_sp);
	_cleanup_(groups_deinit) struct groups groups = {0};
	_cleanup_(task_groups_deinit) struct task_groups tasks = {0};
	int ret = groups_init(&groups, traces, n, merge);

	if (ret == 0)
		ret = task_groups_init(&tasks, traces, n, options->brief || options->group);
	return ret ? ret : put_all(&r, &groups, &tasks);
}

/* For a terminal: what is still too long after names and columns made room goes on in another line. */
static int write_wrapped(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
			 FILE *out)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *whole = open_memstream(&text, &len);
	int ret = whole ? write_to(traces, n, deadlocks, options, whole) : -ENOMEM;

	if (whole && fclose(whole) != 0 && ret == 0)
		ret = -ENOMEM;
	if (ret)
		return ret;
	report_begin(); /* a stream in memory may have left something in errno */
	wrap_lines(text, options->width, out);
	return report_flush(out);
}

int report_text(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out)
{
	return options->width ? write_wrapped(traces, n, deadlocks, options, out) : write_to(traces, n, deadlocks, options, out);
}
