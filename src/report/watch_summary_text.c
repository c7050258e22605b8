/* SPDX-License-Identifier: MIT */
#include "report/watch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/text_frame.h"
#include "report/wait_words.h"
#include "report/watch_words.h"

enum {
	MOST_GROUPS = 10, /* of a section */
	MOST_NUMBERS = 8,
	MOST_LIVES = 8, /* threads that were born, or have ended */
};

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static const char *duration(const struct watch_log *w, char buf[DURATION_LEN])
{
	return format_duration(w->now_ns - w->begun_ns, buf);
}

/* What was done: "10 looks in 9.0 s at server (pid 4711): 14 threads, 2 new, 1 ended" */
static void put_heading(const struct why_report *r, const struct watch_log *w)
{
	char buf[DURATION_LEN];
	FILE *out = r->text.out;

	fputc('\n', out);
	text_style(&r->text, STYLE_STRONG);
	fputs("SUMMARY", out);
	text_style(&r->text, STYLE_PLAIN);
	fprintf(out, ": %" PRIu32 " look%s", w->rounds, plural(w->rounds));
	if (w->rounds > 1)
		fprintf(out, " in %s", duration(w, buf));
	if (w->threads.len)
		fprintf(out, ": %zu thread%s", w->threads.len, plural(w->threads.len));
	else
		fputs(": no thread is left", out);
	if (w->nborn)
		fprintf(out, ", %" PRIu32 " born meanwhile", w->nborn);
	if (w->nended)
		fprintf(out, ", %" PRIu32 " ended", w->nended);
	if (w->skipped)
		fprintf(out, "; %" PRIu32 " look%s left out for want of time", w->skipped, plural(w->skipped));
	if (w->failed)
		fprintf(out, "; %" PRIu32 " look%s failed", w->failed, plural(w->failed));
	fputs(w->interrupted ? "; interrupted\n" : "\n", out);
	for (size_t i = 0; i < w->processes.len; i++)
		if (w->processes.data[i].ended) {
			text_untrusted(&r->text, w->processes.data[i].comm);
			fprintf(out, " (pid %d) has ended\n", (int)w->processes.data[i].pid);
		}
}

static void put_section(const struct why_report *r, const struct watch_log *w, enum watch_section section, size_t count)
{
	static const char *const titles[WATCH_SECTIONS] = {
		[WATCH_SECTION_BLOCKED] = "STUCK",
		[WATCH_SECTION_WAITING] = "DID NOT MOVE",
		[WATCH_SECTION_HALTED] = "STOPPED MOVING",
		[WATCH_SECTION_LOOPS] = "BACK IN THE SAME PLACE",
		[WATCH_SECTION_MOVES] = "MOVES",
		[WATCH_SECTION_BUSY] = "BUSY",
	};
	char buf[DURATION_LEN];
	FILE *out = r->text.out;

	fputc('\n', out);
	text_style(&r->text, section == WATCH_SECTION_BLOCKED ? STYLE_BAD : STYLE_STRONG);
	fputs(titles[section], out);
	text_style(&r->text, STYLE_PLAIN);
	fprintf(out, ": %zu thread%s ", count, plural(count));
	switch (section) {
	case WATCH_SECTION_BLOCKED:
		fprintf(out, "%s blocked, and did not move at all in %s\n", count == 1 ? "is" : "are", duration(w, buf));
		break;
	case WATCH_SECTION_WAITING:
		fprintf(out, "waited all the time for something to happen: idle, unless it should have happened\n");
		break;
	case WATCH_SECTION_HALTED:
		fputs("moved at first, but not in the last looks\n", out);
		break;
	case WATCH_SECTION_LOOPS:
		fprintf(out, "moved, but each look found %s in the same place: slow, or a loop that waits\n", count == 1 ? "it" : "them");
		break;
	case WATCH_SECTION_MOVES:
		fprintf(out, "moved, with little CPU: slow, or %s has little to do\n", count == 1 ? "it" : "each");
		break;
	default:
		fputs("ran\n", out);
		break;
	}
}

static void put_numbers(const struct why_report *r, const struct watched_thread *const *members, size_t count)
{
	fputs("    tid", r->text.out);
	for (size_t i = 0; i < count && i < MOST_NUMBERS; i++) {
		fprintf(r->text.out, " %d ", (int)members[i]->tid);
		text_untrusted(&r->text, members[i]->name);
		fputs(i + 1 < count ? "," : "", r->text.out);
	}
	fputs(count > MOST_NUMBERS ? " …\n" : "\n", r->text.out);
}

/* The whole stack if that is wanted, else the functions that matter. */
static void put_stack(const struct why_report *r, const struct trace_thread *t)
{
	const struct frame_format format = {.verbose = true, .no_addresses = true, .indent = "    ", .width = r->options->width};

	if (r->options->verbose) {
		text_user_stack(&r->text, &format, t->user);
		return;
	}
	watch_put_path(r, t, "    in ");
	fputc('\n', r->text.out);
}

/* Who does not move: what for, and where. */
static void put_still(const struct why_report *r, const struct watched_thread *const *members, const struct watch_group *group)
{
	char buf[DURATION_LEN];

	fputs("  ", r->text.out);
	watch_put_threads(r, members, group->count);
	fputc(' ', r->text.out);
	if (group->section == WATCH_SECTION_HALTED)
		fprintf(r->text.out, "%s not moved for %s; %s ", group->count == 1 ? "has" : "have",
			format_duration(members[0]->last.at_ns - members[0]->still_since_ns, buf), group->count == 1 ? "it" : "they");
	watch_put_doing(r, members, group->count);
	fputc('\n', r->text.out);
	if (group->count > 1)
		put_numbers(r, members, group->count);
	put_stack(r, members[0]->traced);
}

/* Who moves, and comes back: how often, and where. */
static void put_loop(const struct why_report *r, const struct watched_thread *const *members, const struct watch_group *group)
{
	put_still(r, members, group);
	fputs("    ", r->text.out);
	watch_put_share(&r->text, group->share);
	if (group->count == 1)
		fprintf(r->text.out, ", moved in %" PRIu32 " of %" PRIu32 " intervals", members[0]->steps[WATCH_RETURNED], members[0]->looks - 1);
	fputc('\n', r->text.out);
}

static int compare_places(const void *a, const void *b)
{
	const struct watch_place *x = a, *y = b;

	return (x->looks < y->looks) - (x->looks > y->looks);
}

/* "  98 % CPU  tid 15 hasher: in mix (7 of 10 looks), fold (3)" */
static void put_busy(const struct why_report *r, const struct watched_thread *const *members, const struct watch_group *group)
{
	const struct watched_thread *t = members[0];
	struct watch_place places[WATCH_PLACES];
	FILE *out = r->text.out;

	for (uint32_t i = 0; i < t->nplaces; i++)
		places[i] = t->places[i];
	qsort(places, t->nplaces, sizeof(places[0]), compare_places);
	fputs("  ", out);
	watch_put_thread(r, t);
	fputs(": ", out);
	watch_put_share(&r->text, group->share);
	for (uint32_t i = 0; i < t->nplaces; i++) {
		fputs(i ? ", " : ", seen in ", out);
		text_style(&r->text, STYLE_STRONG);
		text_untrusted(&r->text, places[i].name);
		text_style(&r->text, STYLE_PLAIN);
		if (i == 0)
			fprintf(out, " (%" PRIu32 " of %" PRIu32 " looks)", places[i].looks, t->looks);
		else
			fprintf(out, " (%" PRIu32 ")", places[i].looks);
	}
	if (t->elsewhere)
		fprintf(out, ", elsewhere (%" PRIu32 ")", t->elsewhere);
	fputc('\n', out);
}

static void put_group(const struct why_report *r, const struct watch_groups *groups, const struct watch_group *group)
{
	const struct watched_thread *const *members = groups->members + group->first;

	if (group->section == WATCH_SECTION_BUSY || group->section == WATCH_SECTION_MOVES)
		put_busy(r, members, group);
	else if (group->section == WATCH_SECTION_LOOPS)
		put_loop(r, members, group);
	else
		put_still(r, members, group);
}

/* With all frames it was told when it was found. */
static void put_deadlock(const struct why_report *r, const struct deadlock *d)
{
	fputc('\n', r->text.out);
	why_put_headline(&r->text, d);
	fputc('\n', r->text.out);
	for (size_t i = 0; i < d->len; i++) {
		fputs("  ", r->text.out);
		why_put_thread(r, d->data[i]);
		fputc(' ', r->text.out);
		wait_put_doing(&r->text, &d->data[i], 1);
		wait_put_holder(&r->text, &d->data[i], 1, r->traces, r->n);
		fputc('\n', r->text.out);
		put_stack(r, d->data[i]);
	}
}

static void put_groups(const struct why_report *r, const struct watch_log *w, const struct watch_groups *groups)
{
	for (size_t i = 0, next; i < groups->len; i = next) {
		enum watch_section section = groups->data[i].section;
		size_t count = 0, shown = 0;

		for (next = i; next < groups->len && groups->data[next].section == section; next++)
			count += groups->data[next].count;
		put_section(r, w, section, count);
		for (size_t k = i; k < next && k < i + MOST_GROUPS; k++) {
			put_group(r, groups, &groups->data[k]);
			shown += groups->data[k].count;
		}
		if (shown < count)
			fprintf(r->text.out, "  and %zu more thread%s\n", count - shown, plural(count - shown));
	}
}

static void put_born(const struct why_report *r, const struct watch_log *w)
{
	FILE *out = r->text.out;
	uint32_t n = 0;

	for (size_t i = 0; i < w->threads.len; i++) {
		const struct watched_thread *t = &w->threads.data[i];

		if (t->born <= 1 || n++ >= MOST_LIVES)
			continue;
		fputs(n == 1 ? "\nBORN: " : ", ", out);
		watch_put_thread(r, t);
		fprintf(out, " (in look %" PRIu32 ")", t->born);
	}
	if (n > MOST_LIVES)
		fprintf(out, " and %" PRIu32 " more", n - MOST_LIVES);
	fputs(n ? "\n" : "", out);
}

/* "  tid 16 http, before look 4: had not moved, last seen in accept_request" */
static void put_ended(const struct why_report *r, const struct watched_thread *t)
{
	uint32_t moved = t->steps[WATCH_RETURNED] + t->steps[WATCH_RAN];
	FILE *out = r->text.out;

	fputs("  ", out);
	watch_put_thread(r, t);
	fprintf(out, ", before look %" PRIu32 ": ", t->ended);
	if (t->looks > 1 && !moved)
		fputs("had not moved", out);
	else if (t->looks > 1)
		watch_put_share(&r->text, watch_cpu_share(t));
	else
		fputs("seen once", out);
	if (t->place) {
		fputs(", last seen in ", out);
		text_untrusted(&r->text, t->place);
	}
	fputc('\n', out);
}

/* Who was not there all the time. */
static void put_lives(const struct why_report *r, const struct watch_log *w)
{
	size_t shown = w->ended.len < MOST_LIVES ? w->ended.len : MOST_LIVES;

	put_born(r, w);
	if (!w->nended)
		return;
	fprintf(r->text.out, "\nENDED: %" PRIu32 " thread%s\n", w->nended, plural(w->nended));
	for (size_t i = 0; i < shown; i++)
		put_ended(r, &w->ended.data[i]);
	if (w->nended > shown)
		fprintf(r->text.out, "  and %" PRIu32 " more\n", w->nended - (uint32_t)shown);
}

static void put_end(const struct watch_report *report, FILE *out)
{
	if (report->watch->rounds < 2)
		fputs("\nOne look does not tell who moves: take at least two.\n", out);
	if (report->deadlocks && report->deadlocks->maybe_more)
		fprintf(out, "\n%s\n", deadlocks_doubt(report->deadlocks));
	else if (report->deadlocks && !report->deadlocks->len && report->n)
		fputs("\nNo deadlock was found.\n", out);
}

int report_watch_summary_text(const struct watch_report *report, const struct report_options *options, FILE *out)
{
	const struct why_report r = watch_why_report(report, options, out);
	_cleanup_(watch_groups_deinit) struct watch_groups groups = {0};

	if (!watch_groups_init(&groups, report->watch, report->deadlocks))
		return -ENOMEM;
	report_begin();
	put_heading(&r, report->watch);
	for (size_t i = 0; report->deadlocks && i < report->deadlocks->len; i++)
		put_deadlock(&r, &report->deadlocks->data[i]);
	put_groups(&r, report->watch, &groups);
	put_lives(&r, report->watch);
	put_end(report, out);
	return report_flush(out);
}
