/* SPDX-License-Identifier: MIT */
#include "model/offcpu.h"

#include <stdlib.h>

#include "model/offcpu_idle.h"
#include "model/offcpu_merge.h"

void offcpu_profile_deinit(struct offcpu_profile *profile)
{
	vec_deinit(&profile->threads);
	vec_deinit(&profile->rows);
	vec_deinit(&profile->losses);
	vec_deinit(&profile->notes);
}

bool offcpu_profile_add_thread(struct offcpu_profile *profile, const struct offcpu_thread *thread)
{
	offcpu_sum_merge(&profile->total, &thread->sum);
	return vec_push(&profile->threads, *thread);
}

bool offcpu_profile_add_row(struct offcpu_profile *profile, struct offcpu_row row)
{
	return vec_push(&profile->rows, row);
}

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

bool offcpu_profile_finish(struct offcpu_profile *profile)
{
	/* Who is idle is known of threads, and so before they are added up. */
	bool ok = offcpu_merge_rows(profile) && offcpu_mark_idle(profile) &&
		  (!profile->by_process || offcpu_merge_threads(profile));

	if (profile->threads.len)
		qsort(profile->threads.data, profile->threads.len, sizeof(*profile->threads.data), compare_threads);
	if (profile->rows.len)
		qsort(profile->rows.data, profile->rows.len, sizeof(*profile->rows.data), compare_rows);
	return ok;
}
