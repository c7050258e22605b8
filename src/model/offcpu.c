/* SPDX-License-Identifier: MIT */
#include "model/offcpu.h"

#include <stdlib.h>

enum { IDLE_PERCENT = 80 }; /* of the recording that a thread spends in one sleep to be called idle */

void offcpu_profile_deinit(struct offcpu_profile *profile)
{
	vec_deinit(&profile->threads);
	vec_deinit(&profile->rows);
	vec_deinit(&profile->losses);
	vec_deinit(&profile->notes);
}

static void add_sum(struct offcpu_sum *to, const struct offcpu_sum *sum)
{
	if (!to->count || sum->min_ns < to->min_ns)
		to->min_ns = sum->min_ns;
	if (sum->max_ns > to->max_ns)
		to->max_ns = sum->max_ns;
	to->count += sum->count;
	to->total_ns += sum->total_ns;
	to->runnable_ns += sum->runnable_ns;
}

bool offcpu_profile_add_thread(struct offcpu_profile *profile, const struct offcpu_thread *thread)
{
	add_sum(&profile->total, &thread->sum);
	return vec_push(&profile->threads, *thread);
}

bool offcpu_profile_add_row(struct offcpu_profile *profile, struct offcpu_row row)
{
	row.idle = row.state == 'S' && row.sum.total_ns / IDLE_PERCENT >= profile->duration_ns / 100;
	return vec_push(&profile->rows, row);
}

static int by_total(const struct offcpu_sum *a, const struct offcpu_sum *b)
{
	return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
}

static int compare_threads(const void *a, const void *b)
{
	return by_total(&((const struct offcpu_thread *)a)->sum, &((const struct offcpu_thread *)b)->sum);
}

static int compare_rows(const void *a, const void *b)
{
	return by_total(&((const struct offcpu_row *)a)->sum, &((const struct offcpu_row *)b)->sum);
}

void offcpu_profile_sort(struct offcpu_profile *profile)
{
	if (profile->threads.len)
		qsort(profile->threads.data, profile->threads.len, sizeof(*profile->threads.data), compare_threads);
	if (profile->rows.len)
		qsort(profile->rows.data, profile->rows.len, sizeof(*profile->rows.data), compare_rows);
}
