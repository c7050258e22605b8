/* SPDX-License-Identifier: MIT */
#include "offcpu/profile.h"

#include <stdlib.h>

#include "offcpu/cause.h"
#include "offcpu/idle.h"
#include "offcpu/merge.h"

/* Equal totals by number, so that the order does not depend on how it is sorted. */
static int compare(const struct offcpu_sum *a, const struct offcpu_sum *b, pid_t tid_a, pid_t tid_b)
{
	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return (tid_a > tid_b) - (tid_a < tid_b);
}

static int compare_threads(const void *a, const void *b)
{
	const struct offcpu_thread *x = a, *y = b;

	return compare(&x->sum, &y->sum, x->tid, y->tid);
}

static int compare_rows(const void *a, const void *b)
{
	const struct offcpu_row *x = a, *y = b;

	return compare(&x->sum, &y->sum, x->tid ? x->tid : x->pid, y->tid ? y->tid : y->pid);
}

/* By pid and tid; of several threads with the same ones, the oldest first. */
static int compare_starts(const void *a, const void *b)
{
	const struct offcpu_thread *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Counts the threads that had the same pid and tid one after the other. */
static void count_threads(struct offcpu_profile *profile)
{
	struct offcpu_thread *threads = profile->threads.data;
	size_t n = profile->threads.len;

	if (!n)
		return;
	qsort(threads, n, sizeof(*threads), compare_starts);
	for (size_t i = 0; i < n; i++) {
		bool again = i && threads[i].pid == threads[i - 1].pid && threads[i].tid == threads[i - 1].tid;

		threads[i].nth = again ? threads[i - 1].nth + 1 : 1;
	}
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_row *row = &profile->rows.data[i];
		const struct offcpu_thread key = {.pid = row->pid, .tid = row->tid, .start_ns = row->thread_start_ns};
		const struct offcpu_thread *thread = bsearch(&key, threads, n, sizeof(*threads), compare_starts);

		row->nth = thread ? thread->nth : 1;
	}
}

static void find_causes(struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->rows.len; i++)
		profile->rows.data[i].cause = offcpu_cause_of(&profile->rows.data[i]);
}

void offcpu_profile_use_looks(struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_row *row = &profile->rows.data[i];
		const bool unknown = row->cause == OFFCPU_CAUSE_FUTEX || row->cause == OFFCPU_CAUSE_OTHER;
		const struct trace_thread *t = unknown ? offcpu_profile_look(profile, row, &row->sum) : NULL;

		if (t && offcpu_cause_of_wait(t->wait.kind) != OFFCPU_CAUSE_OTHER)
			row->cause = offcpu_cause_of_wait(t->wait.kind);
	}
}

bool offcpu_profile_finish(struct offcpu_profile *profile)
{
	bool ok;

	count_threads(profile);
	/* Threads are idle, not processes: so mark them before they are added up. */
	ok = offcpu_merge_rows(profile) && offcpu_mark_idle(profile) &&
	     (!profile->by_process || offcpu_merge_threads(profile));
	find_causes(profile);
	if (profile->threads.len)
		qsort(profile->threads.data, profile->threads.len, sizeof(*profile->threads.data), compare_threads);
	if (profile->rows.len)
		qsort(profile->rows.data, profile->rows.len, sizeof(*profile->rows.data), compare_rows);
	return ok;
}
