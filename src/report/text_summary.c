/* SPDX-License-Identifier: MIT */
#include "report/text_summary.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "report/container.h"
#include "report/shorten.h"
#include "report/text_frame.h"

struct summary {
	struct text text;
	const struct report_options *options;
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

static void put_consistency(const struct summary *r, const struct capture_info *info)
{
	fputs(", ", r->text.out);
	text_style(&r->text, info->consistent ? STYLE_GOOD : STYLE_BAD);
	fputs(info->consistent ? "consistent" : "not consistent", r->text.out);
	text_style(&r->text, STYLE_PLAIN);
	if (info->consistent && info->companions)
		fprintf(r->text.out, " with %" PRIu32 " other %s", info->companions, info->companions == 1 ? "process" : "processes");
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

static void put_process(const struct summary *r, const struct trace *trace)
{
	const struct snapshot *snap = trace->snap;
	const struct capture_info *info = &snap->capture;
	size_t n = snap->threads.len;
	FILE *out = r->text.out;

	fputs("stakeout: ", out);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, snap->comm ? snap->comm : "?");
	text_style(&r->text, STYLE_PLAIN);
	fprintf(out, " (pid %d%s", snap->pid, snap->replayed ? ", replayed" : "");
	container_text(&r->text, snap->inner_pid, &snap->container);
	put_runtimes(r, snap);
	fprintf(out, "): %zu %s", n, n == 1 ? "thread" : "threads");
	if (trace->threads.len < n)
		fprintf(out, " (%zu shown)", trace->threads.len);
	put_stopped(out, info);
	if (info->retaken_threads)
		fprintf(out, ", %" PRIu32 " %s read again", info->retaken_threads, info->retaken_threads == 1 ? "thread" : "threads");
	put_consistency(r, info);
}

static size_t count_columns(const struct summary *r, const struct trace *trace)
{
	_cleanup_free_ char *line = NULL;
	struct summary plain = *r;
	size_t len;

	plain.text = (struct text){.out = open_memstream(&line, &len)};
	if (!plain.text.out)
		return 0;
	put_process(&plain, trace);
	put_timings(plain.text.out, trace, "; ");
	fclose(plain.text.out);
	return line ? text_columns(line) - 1 : 0; /* without the newline */
}

/* The times are on a line of their own where the terminal has no room for them. */
static void put_summary(const struct summary *r, const struct trace *trace)
{
	unsigned width = r->options->width;

	put_process(r, trace);
	put_timings(r->text.out, trace, width && count_columns(r, trace) > width ? "\n  " : "; ");
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

	for (size_t i = 0; i < n; i++)
		put_summary(&summary, traces[i]);
	put_notes(&summary, traces, n);
}
