/* SPDX-License-Identifier: MIT */
#include "model/offcpu.h"

void offcpu_profile_deinit(struct offcpu_profile *profile)
{
	vec_deinit(&profile->threads);
	vec_deinit(&profile->rows);
	vec_deinit(&profile->losses);
	vec_deinit(&profile->notes);
}
