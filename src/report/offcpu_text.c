/* SPDX-License-Identifier: MIT */
#include "report/offcpu_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "report/lacking.h"
#include "report/offcpu_made_code.h"
#include "report/offcpu_reasons.h"
#include "report/report.h"
#include "report/text_frame.h"
#include "report/wrap.h"

enum {
	SHOWN_REASONS = 3,
};

size_t offcpu_shown(const struct offcpu_text *r, size_t usual, size_t all)
{
	size_t most = r->options->verbose ? all : r->options->top ? r->options->top : usual;

	return most < all ? most : all;
}

const char *offcpu_format_wait(uint64_t ns, char buf[DURATION_LEN])
{
	if (ns >= 1000)
		return format_duration(ns, buf);
	snprintf(buf, DURATION_LEN, ns ? "%" PRIu64 " ns" : "0", ns);
	return buf;
}

const char *offcpu_format_share(uint64_t part, uint64_t whole, char buf[SHARE_LEN])
{
	uint64_t tenths = (offcpu_share(part, whole) + 50) / 100;

	snprintf(buf, SHARE_LEN, "%" PRIu64 ".%" PRIu64 " %%", tenths / 10, tenths % 10);
	return buf;
}

/* Of less than 100 waits p99 is the longest, and one or two are told by average and longest. */
static void put_quantiles(FILE *out, const struct offcpu_sum *sum, const struct offcpu_quantiles *quantiles)
{
	enum { FEW = 3 };
	char time[DURATION_LEN], longest[DURATION_LEN];

	if (!quantiles || !quantiles->are_known || sum->count < FEW)
		return;
	offcpu_format_wait(sum->max_ns, longest);
	if (strcmp(offcpu_format_wait(quantiles->p50_ns, time), longest) != 0)
		fprintf(out, ", p50 %s", time);
	if (strcmp(offcpu_format_wait(quantiles->p99_ns, time), longest) != 0)
		fprintf(out, ", p99 %s", time);
}

void offcpu_put_waits(FILE *out, const struct offcpu_sum *sum, const struct offcpu_quantiles *quantiles)
{
	char time[DURATION_LEN];

	fprintf(out, "%" PRIu64 " %s", sum->count, sum->count == 1 ? "wait" : "waits");
	if (sum->unfinished && sum->count == 1)
		fputs(", not over", out);
	else if (sum->unfinished)
		fprintf(out, ", %" PRIu64 " not over", sum->unfinished);
	if (sum->count > 1)
		fprintf(out, ", average %s", offcpu_format_wait(offcpu_average(sum), time));
	put_quantiles(out, sum, quantiles);
	if (sum->count > 1)
		fprintf(out, ", longest %s", offcpu_format_wait(sum->max_ns, time));
}

void offcpu_put_rest(const struct offcpu_text *r, size_t n, const char *one, const char *many, uint64_t ns,
		     const char *how)
{
	char time[DURATION_LEN], share[SHARE_LEN];

	if (!n)
		return;
	text_style(&r->text, STYLE_DIM);
	fprintf(r->text.out, "  %zu %s, %s of the time (%s)%s", n, n == 1 ? one : many,
		offcpu_format_share(ns, r->profile->total.total_ns, share), offcpu_format_wait(ns, time), how);
	text_style(&r->text, STYLE_PLAIN);
	fputc('\n', r->text.out);
}

/* The first lines: what was recorded, and what to know about it. */

static void put_part(const struct offcpu_text *r, const char *prefix, const char *what, uint64_t ns)
{
	char time[DURATION_LEN], share[SHARE_LEN];

	fprintf(r->text.out, "%s%s %s (%s)", prefix, what, offcpu_format_wait(ns, time),
		offcpu_format_share(ns, r->profile->total.total_ns, share));
}

enum { LIMIT_LEN = 48 };

/* Exactly as it was given: 1.25 ms is not 1.3 ms. */
static const char *format_limit(uint64_t ns, char buf[LIMIT_LEN])
{
	static const struct unit {
		const char *name;
		uint64_t ns;
		int digits;
	} units[] = {{"s", 1000000000, 9}, {"ms", 1000000, 6}, {"µs", 1000, 3}, {"ns", 1, 0}};
	const struct unit *unit = units;
	char fraction[16] = "";
	size_t len;

	while (unit->ns > ns && unit->ns > 1)
		unit++;
	if (ns % unit->ns)
		snprintf(fraction, sizeof(fraction), ".%0*" PRIu64, unit->digits, ns % unit->ns);
	for (len = strlen(fraction); len && fraction[len - 1] == '0';)
		fraction[--len] = '\0';
	snprintf(buf, LIMIT_LEN, "%" PRIu64 "%s %s", ns / unit->ns, fraction, unit->name);
	return buf;
}

static bool has_all_states(const struct offcpu_filter *filter)
{
	return filter->sleeping && filter->uninterruptible && filter->runnable;
}

static bool has_limits(const struct offcpu_filter *filter)
{
	return filter->min_ns || filter->max_ns != UINT64_MAX;
}

/* "waits of 1 ms to 20 ms in state D". */
static void put_filter(FILE *out, const struct offcpu_filter *filter)
{
	const char *const states[] = {filter->sleeping ? "S" : NULL, filter->uninterruptible ? "D" : NULL,
				      filter->runnable ? "R" : NULL};
	char min[LIMIT_LEN], max[LIMIT_LEN];
	const char *separator = " in state ";

	format_limit(filter->min_ns, min);
	format_limit(filter->max_ns, max);
	fputs("waits", out);
	if (filter->min_ns && filter->max_ns != UINT64_MAX)
		fprintf(out, " of %s to %s", min, max);
	else if (filter->min_ns)
		fprintf(out, " of at least %s", min);
	else if (filter->max_ns != UINT64_MAX)
		fprintf(out, " of at most %s", max);
	for (size_t i = 0; !has_all_states(filter) && i < sizeof(states) / sizeof(states[0]); i++) {
		if (!states[i])
			continue;
		fprintf(out, "%s%s", separator, states[i]);
		separator = " or ";
	}
}

/* Nothing was recorded: perhaps the options left it out. An estimate never includes state R. */
static void put_nothing(FILE *out, const struct offcpu_filter *filter, bool estimate)
{
	const bool all_states = filter->sleeping && filter->uninterruptible && (filter->runnable || estimate);
	const char *const options[] = {filter->min_ns ? "--min" : NULL, filter->max_ns != UINT64_MAX ? "--max" : NULL,
				       all_states ? NULL : "--state"};
	const char *separator = ": see ";

	fputs("no ", out);
	put_filter(out, filter);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!options[i])
			continue;
		fprintf(out, "%s%s", separator, options[i]);
		separator = ", ";
	}
	fputc('\n', out);
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

static uint64_t busy_ns(const struct offcpu_text *r, enum offcpu_cause cause)
{
	return r->totals.causes[cause].total_ns - r->totals.causes[cause].idle_ns;
}

/* It would be shown as 0.0 %. */
static bool is_next_to_nothing(const struct offcpu_text *r, uint64_t ns)
{
	return offcpu_share(ns, r->profile->total.total_ns) < 50;
}

/* "  not idle, by cause: lock 598 ms (6.0 %), disk 300 ms (3.0 %)": the largest first. */
static void put_causes(const struct offcpu_text *r)
{
	enum offcpu_cause order[OFFCPU_CAUSES];
	size_t n = 0;

	for (enum offcpu_cause cause = 0; cause < OFFCPU_CAUSES; cause++) {
		size_t at = n;

		if (!busy_ns(r, cause) || (!r->options->verbose && is_next_to_nothing(r, busy_ns(r, cause))))
			continue;
		for (; at && busy_ns(r, order[at - 1]) < busy_ns(r, cause); at--)
			order[at] = order[at - 1];
		order[at] = cause;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		put_part(r, i ? ", " : r->totals.idle_rows ? "  not idle, by cause: " : "  by cause: ", offcpu_cause_name(order[i]),
			 busy_ns(r, order[i]));
	if (n)
		fputc('\n', r->text.out);
}

/* In local time, as log files have it: "2023-11-14 22:13:20". */
static void put_start(FILE *out, int64_t start_ns)
{
	const time_t seconds = (time_t)(start_ns / 1000000000);
	char date[32];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	fputs(date, out);
}

static void put_summary(const struct offcpu_text *r)
{
	const struct offcpu_profile *profile = r->profile;
	size_t n = profile->threads.len;
	char time[DURATION_LEN];
	FILE *out = r->text.out;

	fprintf(out, "stakeout offcpu: %s from ", offcpu_format_wait(profile->duration_ns, time));
	put_start(out, profile->start_ns);
	if (n)
		fprintf(out, ", %zu %s of ", n, n == 1 ? "thread" : "threads");
	if (r->pid)
		fprintf(out, "pid %d", r->pid);
	else if (n)
		fprintf(out, "%zu processes", r->processes);
	if (has_limits(&profile->filter) || !has_all_states(&profile->filter)) {
		fputs(", ", out);
		put_filter(out, &profile->filter);
	}
	put_method(r);
	if (!profile->total.count) {
		put_nothing(out, &profile->filter, profile->estimate);
		return;
	}
	fprintf(out, "off-CPU %s: ", offcpu_format_wait(profile->total.total_ns, time));
	offcpu_put_waits(out, &profile->total, NULL);
	put_part(r, "\n  ", "blocked", r->totals.sleeping_ns);
	put_part(r, ", ", "uninterruptible", r->totals.uninterruptible_ns);
	put_part(r, ",\n  ", "waiting for a CPU", r->totals.runnable_ns);
	if (r->totals.idle_rows) {
		put_part(r, ";\n  of all, ", "idle", r->totals.idle_ns);
		fputs(r->options->hide_idle ? ": hidden" : ": comes last, --hide-idle leaves it out", out);
	}
	fputc('\n', out);
	put_causes(r);
}

/* "incomplete user stacks: 12 of 480 waits (3.1 % of the time): EFAULT: … (10), …": of one kind, or nothing. */
static void put_reasons(const struct offcpu_text *r, const struct offcpu_reasons *reasons, enum offcpu_stack_kind kind)
{
	static const char *const kinds[OFFCPU_STACK_KINDS] = {
		[OFFCPU_USER_STACK] = "incomplete user stacks",
		[OFFCPU_KERNEL_STACK] = "missing kernel stacks",
		[OFFCPU_WAKER_USER_STACK] = "incomplete user stacks of wakers",
		[OFFCPU_WAKER_KERNEL_STACK] = "missing kernel stacks of wakers",
	};
	uint64_t waits = 0, ns = 0;
	size_t n = 0, shown = 0;
	char share[SHARE_LEN];
	FILE *out = r->text.out;

	for (size_t i = 0; i < reasons->len; i++) {
		const struct offcpu_reason *reason = &reasons->data[i];

		n += reason->kind == kind;
		waits += reason->kind == kind ? reason->waits : 0;
		ns += reason->kind == kind ? reason->total_ns : 0;
	}
	if (!n)
		return;
	text_style(&r->text, STYLE_BAD);
	fprintf(out, "%s: %" PRIu64 " of %" PRIu64 " %s (%s of the time)",
		kinds[kind], waits, r->profile->total.count,
		r->profile->total.count == 1 ? "wait" : "waits",
		offcpu_format_share(ns, r->profile->total.total_ns, share));
	for (size_t i = 0; i < reasons->len && shown < SHOWN_REASONS; i++) {
		if (reasons->data[i].kind != kind)
			continue;
		fputs(shown++ ? ", " : ": ", out);
		text_untrusted(&r->text, reasons->data[i].words);
		fprintf(out, " (%" PRIu64 ")", reasons->data[i].waits);
	}
	if (n > shown)
		fprintf(out, ", and %zu %s", n - shown, n - shown == 1 ? "other reason" : "other reasons");
	text_style(&r->text, STYLE_PLAIN);
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

/* Comes last, since it is advice: how to get names for code that has none. */
static void put_makers(const struct offcpu_text *r, const bool makers[OFFCPU_MAKERS])
{
	bool any = false;

	for (int i = 0; i < OFFCPU_MAKERS; i++) {
		if (!makers[i])
			continue;
		text_style(&r->text, STYLE_DIM);
		fprintf(r->text.out, "%scode made at run time has no names: %s", any ? "" : "\n", offcpu_maker_help(i));
		text_style(&r->text, STYLE_PLAIN);
		fputc('\n', r->text.out);
		any = true;
	}
}

static bool write_report(struct offcpu_text *r)
{
	_cleanup_(lacking_deinit) struct lacking lacking = {0};
	_cleanup_(offcpu_reasons_deinit) struct offcpu_reasons reasons = {0};
	const bool hide_idle = r->options->hide_idle;
	bool makers[OFFCPU_MAKERS];

	if (!offcpu_find_names(r) || !offcpu_groups_find(&r->groups, r->profile, r->options->verbose) ||
	    !offcpu_reasons_find(&reasons, r->profile) || !lacking_find_offcpu(&lacking, r->profile, hide_idle) ||
	    !offcpu_find_makers(r->profile, hide_idle, makers))
		return false;
	put_summary(r);
	put_losses(r);
	for (int kind = 0; kind < OFFCPU_STACK_KINDS; kind++)
		put_reasons(r, &reasons, kind);
	for (size_t i = 0; i < r->profile->notes.len; i++)
		text_note(&r->text, "", r->profile->notes.data[i]);
	if (!offcpu_put_threads(r))
		return false;
	offcpu_put_groups(r);
	text_lacking(&r->text, &lacking);
	put_makers(r, makers);
	return true;
}

static bool write_to(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out)
{
	struct offcpu_text r = {
		.text = {.out = out, .color = options->color},
		.options = options,
		.profile = profile,
		.totals = offcpu_totals(profile),
	};
	bool ok = write_report(&r);

	offcpu_groups_deinit(&r.groups);
	u64map_deinit(&r.ambiguous);
	return ok;
}

/* For a terminal: what is still too long after names and columns made room goes on in another line. */
static bool write_wrapped(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *whole = open_memstream(&text, &len);
	bool ok = whole && write_to(profile, options, whole);

	ok = whole && fclose(whole) == 0 && ok;
	report_begin(); /* a stream in memory may have left something in errno */
	if (ok)
		wrap_lines(text, options->width, out);
	return ok;
}

int report_offcpu_text(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out)
{
	bool ok;

	report_begin();
	ok = options->width ? write_wrapped(profile, options, out) : write_to(profile, options, out);
	return ok ? report_flush(out) : -ENOMEM;
}
