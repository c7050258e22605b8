/* SPDX-License-Identifier: MIT */
#include "report/watch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "report/text_frame.h"
#include "report/watch_words.h"

enum {
	MOST_NEWS = 8,	 /* lines of a round */
	MOST_GROUPS = 8, /* lines of the first round */
	MOST_PROCESSES = 4, /* in its heading */
};

/* "   1.0 s  ": what belongs to the round is indented as much. */
static void put_time(const struct why_report *r, const struct watch_log *w)
{
	double seconds = (double)(w->now_ns - w->begun_ns) / NS_PER_S;

	text_style(&r->text, STYLE_DIM);
	fprintf(r->text.out, w->interval_ns < NS_PER_S ? "%7.2f s  " : "%7.1f s  ", seconds);
	text_style(&r->text, STYLE_PLAIN);
}

static const char indent[] = "           ";

static void put_count(FILE *out, const char **before, uint32_t count, const char *one, const char *several)
{
	if (!count)
		return;
	fprintf(out, "%s%" PRIu32 " %s", *before, count, count == 1 ? one : several);
	*before = ", ";
}

struct tally {
	uint32_t steps[WATCH_STEPS];
	int64_t cpu; /* share of all threads, or -1 */
	uint32_t news;
};

static struct tally count_steps(const struct watch_log *w)
{
	struct tally tally = {.cpu = -1};

	for (size_t i = 0; i < w->threads.len; i++) {
		const struct watched_thread *t = &w->threads.data[i];
		int64_t share = t->seen ? watch_step_cpu_share(t) : -1;

		if (!t->seen)
			continue;
		tally.steps[t->step]++;
		tally.news += watch_has_news(t);
		if (share >= 0)
			tally.cpu = share + (tally.cpu < 0 ? 0 : tally.cpu);
	}
	return tally;
}

static void put_tally(const struct why_report *r, const struct watch_log *w, const struct tally *tally)
{
	const char *before = "";
	FILE *out = r->text.out;

	put_time(r, w);
	if (!tally->steps[WATCH_RETURNED] && !tally->steps[WATCH_RAN] && !tally->steps[WATCH_FIRST] && tally->steps[WATCH_STILL] > 1) {
		fprintf(out, "none of %" PRIu32 " threads moved", tally->steps[WATCH_STILL]);
		before = ", ";
	} else {
		put_count(out, &before, tally->steps[WATCH_STILL], "thread did not move", "threads did not move");
	}
	put_count(out, &before, tally->steps[WATCH_RETURNED], "came back to its place", "came back to their places");
	put_count(out, &before, tally->steps[WATCH_RAN], "ran", "ran");
	put_count(out, &before, tally->steps[WATCH_FIRST], "is new", "are new");
	put_count(out, &before, w->nended_now, "has ended", "have ended");
	if (!*before)
		fputs("nothing could be seen", out);
	if (tally->cpu > 0) {
		fputs(": ", out);
		watch_put_share(&r->text, tally->cpu);
	}
	fputc('\n', out);
}

/* What runs by how much, then the others. */
static int compare_news(const void *a, const void *b)
{
	const struct watched_thread *x = *(const struct watched_thread *const *)a, *y = *(const struct watched_thread *const *)b;
	int64_t s = x->step == WATCH_RAN ? watch_step_cpu_share(x) + 1 : -1, t = y->step == WATCH_RAN ? watch_step_cpu_share(y) + 1 : -1;

	if (s != t)
		return s < t ? 1 : -1;
	return x->tid != y->tid ? (x->tid > y->tid) - (x->tid < y->tid) : (x->pid > y->pid) - (x->pid < y->pid);
}

static void put_in(const struct why_report *r, const char *before, const char *place)
{
	if (!place)
		return;
	fputs(before, r->text.out);
	text_style(&r->text, STYLE_STRONG);
	text_untrusted(&r->text, place);
	text_style(&r->text, STYLE_PLAIN);
}

static void put_step(const struct why_report *r, const struct watched_thread *t)
{
	FILE *out = r->text.out;

	fputs(indent, out);
	watch_put_thread(r, t);
	switch (t->step) {
	case WATCH_RAN:
		fputs(" ran, ", out);
		watch_put_share(&r->text, watch_step_cpu_share(t));
		put_in(r, ": in ", t->place);
		if (t->place_before && t->place_before != t->place)
			put_in(r, ", before in ", t->place_before);
		break;
	case WATCH_RETURNED:
		put_in(r, " moved, and came back to where it was: in ", t->place);
		break;
	case WATCH_STILL:
		put_in(r, " did not move any more: in ", t->place);
		break;
	default:
		put_in(r, " is new: in ", t->place);
		break;
	}
	fputc('\n', out);
}

static void put_news(const struct why_report *r, const struct watch_log *w, uint32_t count)
{
	_cleanup_free_ const struct watched_thread **news = malloc((count + 1) * sizeof(*news));
	size_t n = 0;

	for (size_t i = 0; news && i < w->threads.len; i++)
		if (watch_has_news(&w->threads.data[i]))
			news[n++] = &w->threads.data[i];
	if (n)
		qsort(news, n, sizeof(*news), compare_news);
	for (size_t i = 0; i < n && i < MOST_NEWS; i++)
		put_step(r, news[i]);
	if (n > MOST_NEWS)
		fprintf(r->text.out, "%sand %zu more\n", indent, n - MOST_NEWS);
}

static void put_ends(const struct why_report *r, const struct watch_log *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->ended.len && n < MOST_NEWS; i++) {
		const struct watched_thread *t = &w->ended.data[i];
		const struct watched_process *p = watch_process(w, t->pid);

		if (t->ended != w->rounds || (p && p->ended == w->rounds))
			continue;
		fputs(indent, r->text.out);
		watch_put_thread(r, t);
		put_in(r, " has ended; last seen in ", t->place);
		fputs(t->place ? "\n" : " has ended\n", r->text.out);
		n++;
	}
	for (size_t i = 0; i < w->processes.len; i++) {
		const struct watched_process *p = &w->processes.data[i];

		if (p->ended != w->rounds)
			continue;
		fputs(indent, r->text.out);
		text_style(&r->text, STYLE_STRONG);
		text_untrusted(&r->text, p->comm);
		text_style(&r->text, STYLE_PLAIN);
		fprintf(r->text.out, " (pid %d) has ended\n", (int)p->pid);
	}
}

static void put_first_group(const struct why_report *r, const struct watched_thread *const *members, size_t count)
{
	fputs(indent, r->text.out);
	watch_put_threads(r, members, count);
	fputc(' ', r->text.out);
	watch_put_doing(r, members, count);
	watch_put_path(r, members[0]->traced, ", in ");
	fputc('\n', r->text.out);
}

/* Who is there, and what they do, a line for each group. */
static bool put_first(const struct why_report *r, const struct watch_log *w)
{
	_cleanup_(watch_groups_deinit) struct watch_groups groups = {0};
	size_t left = 0;

	if (!watch_groups_init(&groups, w, r->deadlocks))
		return false;
	put_time(r, w);
	fprintf(r->text.out, "%zu %s\n", w->threads.len, w->threads.len == 1 ? "thread" : "threads");
	for (size_t i = 0; i < groups.len; i++) {
		if (i < MOST_GROUPS)
			put_first_group(r, groups.members + groups.data[i].first, groups.data[i].count);
		else
			left += groups.data[i].count;
	}
	if (left)
		fprintf(r->text.out, "%sand %zu more\n", indent, left);
	return true;
}

/* "stakeout: watching server (pid 4711): 10 looks, one every 1.0 s; Ctrl-C ends it, and the summary comes" */
static void put_heading(const struct why_report *r, const struct watch_log *w)
{
	char every[DURATION_LEN];
	FILE *out = r->text.out;

	fputs("stakeout: watching ", out);
	for (size_t i = 0; i < w->processes.len && i < MOST_PROCESSES; i++) {
		fputs(i ? ", " : "", out);
		text_style(&r->text, STYLE_STRONG);
		text_untrusted(&r->text, w->processes.data[i].comm);
		text_style(&r->text, STYLE_PLAIN);
		fprintf(out, " (pid %d)", (int)w->processes.data[i].pid);
	}
	if (w->processes.len > MOST_PROCESSES)
		fprintf(out, " and %zu more", w->processes.len - MOST_PROCESSES);
	fputs(": ", out);
	if (w->wanted)
		fprintf(out, "%" PRIu32 " %s", w->wanted, w->wanted == 1 ? "look" : "looks, ");
	if (w->wanted != 1)
		fprintf(out, "one every %s; Ctrl-C ends it, with a summary", format_duration(w->interval_ns, every));
	fputc('\n', out);
}

static void put_skipped(FILE *out, const struct watch_log *w)
{
	if (w->skipped_now)
		fprintf(out, "note: %" PRIu32 " %s could begin\n", w->skipped_now,
			w->skipped_now == 1 ? "look was left out: its time was over before it" : "looks were left out: their time was over before they");
}

int report_watch_round_text(const struct watch_report *report, const struct report_options *options, FILE *out)
{
	const struct why_report r = watch_why_report(report, options, out);
	const struct watch_log *w = report->watch;
	struct tally tally = count_steps(w);
	bool first = w->rounds == 1;

	report_begin();
	if (first)
		put_heading(&r, w);
	for (size_t i = 0; i < w->notes.len; i++)
		text_note(&r.text, "", w->notes.data[i]);
	put_skipped(out, w);
	if (first && !put_first(&r, w))
		return -ENOMEM;
	if (!first) {
		put_tally(&r, w, &tally);
		put_news(&r, w, tally.news);
		put_ends(&r, w);
	}
	for (size_t i = 0; report->fresh && i < report->fresh->len; i++)
		why_put_deadlock(&r, &report->fresh->data[i]);
	if (report->fresh && report->fresh->len)
		fputc('\n', out);
	return report_flush(out);
}
