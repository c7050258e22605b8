/* SPDX-License-Identifier: MIT */
#include "model/offcpu.h"

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
