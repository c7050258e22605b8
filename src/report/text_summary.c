/* SPDX-License-Identifier: MIT */
#include "report/text_summary.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "report/container.h"
#include "report/shorten.h"
#include "report/text_frame.h"

enum {
	MOST_ALONE = 2, /* so many that are alike still have a line each */
	MOST_PIDS = 8,
};

struct summary {
	struct text text;
	const struct report_options *options;
};

/* Processes of which the same is to be said. */
struct alike {
	const struct trace *const *data;
	size_t len;
};

static void put_stopped(FILE *out, const struct capture_info *info)
{
	char buf[DURATION_LEN];

	if (!info->stopped_threads) {
		fputs(", none stopped", out);
	} else {
		fprintf(out, ", %" PRIu32 " stopped (longest pause %s)", info->stopped_threads,
			format_duration(info->max_pause_ns, buf));
	}
	if (info->windows)
		fprintf(out, ", %" PRIu32 " %s taken for %s", info->cpus_taken, info->cpus_taken == 1 ? "CPU" : "CPUs",
			format_duration(info->window_ns, buf));
}

static void put_companions(FILE *out, uint32_t companions, size_t told)
{
	const uint32_t others = companions >= told ? companions + 1 - (uint32_t)told : 0;

	if (told > 1)
		fputs(" with each other", out);
	if (others)
		fprintf(out, " %s %" PRIu32 " other %s", told > 1 ? "and" : "with", others, others == 1 ? "process" : "processes");
}

static void put_consistency(const struct summary *r, const struct capture_info *info, size_t told)
{
	fputs(", ", r->text.out);
	text_style(&r->text, info->consistent ? STYLE_GOOD : STYLE_BAD);
	fputs(info->consistent ? "consistent" : "not consistent", r->text.out);
	text_style(&r->text, STYLE_PLAIN);
	if (info->consistent && info->companions)
		put_companions(r->text.out, info->companions, told);
	if (!info->consistent && info->inconsistent_why) {
		fputs(" (", r->text.out);
		text_untrusted(&r->text, info->inconsistent_why);
		fputc(')', r->text.out);
	}
}

static void put_stage(FILE *out, const char *before, const char *name, uint64_t ns)
{
	char buf[DURATION_LEN];

	fprintf(out, "%s%s %s", before, name, format_duration(ns, buf));
}

/* Their sum is the total. What was done when a saved snapshot was recorded is not part of it. */
static void put_timings(FILE *out, const struct trace *trace, const char *before)
{
	const struct trace_timings *t = &trace->timings;

	if (trace->snap->replayed) {
		put_stage(out, before, "capture", t->capture_ns);
		put_stage(out, " when it was recorded; now ", "set-up", t->setup_ns);
	} else {
		put_stage(out, before, "set-up", t->setup_ns);
		put_stage(out, ", ", "capture", t->capture_ns);
	}
	put_stage(out, ", ", "unwind", t->unwind_ns);
	if (t->save_ns)
		put_stage(out, ", ", "save", t->save_ns);
	put_stage(out, ", ", "symbols", t->symbolize_ns);
	put_stage(out, ", ", "total", t->total_ns);
	fputc('\n', out);
}

/* ", python 3.11.2", and why there are no frames of it */
static void put_runtimes(const struct summary *r, const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->runtimes.len; i++) {
		const struct snap_runtime *runtime = &snap->runtimes.data[i];

		fputs(", ", r->text.out);
		text_untrusted(&r->text, runtime->name);
		if (runtime->version) {
			fputc(' ', r->text.out);
			text_untrusted(&r->text, runtime->version);
		}
		if (runtime->problem) {
			fputs(", no frames: ", r->text.out);
			text_untrusted(&r->text, runtime->problem);
		}
	}
}

static void put_pids(FILE *out, const struct alike *alike)
{
	if (alike->len > 1)
		fprintf(out, "%zu processes: ", alike->len);
	for (size_t i = 0; i < alike->len && i < MOST_PIDS; i++)
		fprintf(out, "%s%d", i ? ", " : "pid ", (int)alike->data[i]->snap->pid);
	fputs(alike->len > MOST_PIDS ? ", …" : "", out);
}

static void put_processes(const struct summary *r, const struct alike *alike)
{
	const struct trace *trace = alike->data[0];
	const struct snapshot *snap = trace->snap;
	const struct capture_info *info = &snap->capture;
	FILE *out = r->text.out;
	size_t n = 0;

	for (size_t i = 0; i < alike->len; i++)
		n += alike->data[i]->snap->threads.len;
	fputs("stakeout: ", out);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, snap->comm ? snap->comm : "?");
	text_style(&r->text, STYLE_PLAIN);
	fputs(" (", out);
	put_pids(out, alike);
	fputs(snap->replayed ? ", replayed" : "", out);
	container_text(&r->text, alike->len == 1 ? snap->inner_pid : 0, &snap->container);
	put_runtimes(r, snap);
	fprintf(out, "): %zu %s", n, n == 1 ? "thread" : "threads");
	if (trace->threads.len < snap->threads.len)
		fprintf(out, " (%zu shown)", trace->threads.len);
	put_stopped(out, info);
	if (info->retaken_threads)
		fprintf(out, ", %" PRIu32 " %s read again", info->retaken_threads, info->retaken_threads == 1 ? "thread" : "threads");
	put_consistency(r, info, alike->len);
}

/* Of several, what it took until the last was done. */
static const struct trace *last_of(const struct alike *alike)
{
	return alike->data[alike->len - 1];
}

static size_t count_columns(const struct summary *r, const struct alike *alike)
{
	_cleanup_free_ char *line = NULL;
	struct summary plain = *r;
	size_t len;

	plain.text = (struct text){.out = open_memstream(&line, &len)};
	if (!plain.text.out)
		return 0;
	put_processes(&plain, alike);
	put_timings(plain.text.out, last_of(alike), "; ");
	fclose(plain.text.out);
	return line ? text_columns(line) - 1 : 0; /* without the newline */
}

/* The times are on a line of their own where the terminal has no room for them. */
static void put_line(const struct summary *r, const struct alike *alike)
{
	unsigned width = r->options->width;

	put_processes(r, alike);
	put_timings(r->text.out, last_of(alike), width && count_columns(r, alike) > width ? "\n  " : "; ");
}

static bool have_same_runtimes(const struct snapshot *a, const struct snapshot *b)
{
	if (a->runtimes.len != b->runtimes.len)
		return false;
	for (size_t i = 0; i < a->runtimes.len; i++) {
		const struct snap_runtime *x = &a->runtimes.data[i], *y = &b->runtimes.data[i];

		if (!same_text(x->name, y->name) || !same_text(x->version, y->version) || !same_text(x->problem, y->problem))
			return false;
	}
	return true;
}

static bool have_same_container(const struct snapshot *a, const struct snapshot *b)
{
	return same_text(a->container.cgroup, b->container.cgroup) && same_text(a->container.id, b->container.id) &&
	       same_text(a->container.pod, b->container.pod);
}

/* It was captured together with others, and there is nothing special about it. */
static bool is_ordinary(const struct trace *trace)
{
	const struct capture_info *info = &trace->snap->capture;

	return info->companions && info->instant_ns && info->consistent && !info->stopped_threads && !info->retaken_threads && trace->threads.len == trace->snap->threads.len;
}

static bool are_alike(const struct trace *a, const struct trace *b)
{
	const struct capture_info *x = &a->snap->capture, *y = &b->snap->capture;

	return is_ordinary(a) && is_ordinary(b) && x->instant_ns == y->instant_ns && x->companions == y->companions && x->windows == y->windows &&
	       x->cpus_taken == y->cpus_taken && x->window_ns == y->window_ns && a->snap->replayed == b->snap->replayed &&
	       same_text(a->snap->comm, b->snap->comm) && have_same_runtimes(a->snap, b->snap) && have_same_container(a->snap, b->snap);
}

/* The first, and all that are like it. */
static void find_alike(const struct trace *const *traces, size_t n, size_t first, bool *told, const struct trace **members, size_t *count)
{
	for (size_t i = first; i < n; i++) {
		if (told[i] || (i > first && !are_alike(traces[first], traces[i])))
			continue;
		told[i] = true;
		members[(*count)++] = traces[i];
	}
}

static void put_each(const struct summary *r, const struct trace *const *traces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_line(r, &(struct alike){.data = &traces[i], .len = 1});
}

/* Many of a kind, such as the workers of a server, share a line. */
static void put_lines(const struct summary *r, const struct trace *const *traces, size_t n)
{
	_cleanup_free_ const struct trace **members = calloc(n, sizeof(*members));
	_cleanup_free_ bool *told = calloc(n, sizeof(*told));

	if (r->options->verbose || !members || !told) {
		put_each(r, traces, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct alike alike = {.data = members};

		if (told[i])
			continue;
		find_alike(traces, n, i, told, members, &alike.len);
		if (alike.len > MOST_ALONE)
			put_line(r, &alike);
		else
			put_each(r, alike.data, alike.len);
	}
}

/* All that there is to know, each once. */
static void put_notes(const struct summary *r, const struct trace *const *traces, size_t n)
{
	_cleanup_(notes_deinit) struct notes notes = {0};

	for (size_t i = 0; i < n; i++) {
		const struct snapshot *snap = traces[i]->snap;

		notes_add_all(&notes, &snap->notes);
		notes_add_all(&notes, &traces[i]->notes);
		if (r->options->kernel && snap->capture.kernel_stack_error)
			notes_add(&notes, "no kernel stacks: %s", snap->capture.kernel_stack_error);
		if (r->options->kernel && traces[i]->kernel_symbols_error)
			notes_add(&notes, "no names in kernel stacks: %s", traces[i]->kernel_symbols_error);
	}
	for (size_t i = 0; i < notes.len; i++)
		text_note(&r->text, "", notes.data[i]);
}

void text_summary(const struct text *t, const struct report_options *options, const struct trace *const *traces, size_t n)
{
	const struct summary summary = {.text = *t, .options = options};

	put_lines(&summary, traces, n);
	put_notes(&summary, traces, n);
}
