/* SPDX-License-Identifier: MIT */
#include "report/offcpu_totals.h"

struct offcpu_totals offcpu_totals(const struct offcpu_profile *profile)
{
	struct offcpu_totals totals = {0};

	for (size_t i = 0; i < profile->threads.len; i++) {
		totals.sleeping_ns += profile->threads.data[i].sleeping_ns;
		totals.uninterruptible_ns += profile->threads.data[i].uninterruptible_ns;
		totals.runnable_ns += profile->threads.data[i].runnable_ns;
	}
	for (size_t i = 0; i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];

		if (!row->idle)
			continue;
		totals.idle_rows++;
		totals.idle_count += row->sum.count;
		totals.idle_ns += row->sum.total_ns;
	}
	return totals;
}

uint64_t offcpu_share(uint64_t part, uint64_t whole)
{
	/* In 64 bits the product would overflow after two days of one thread. */
	return whole ? (uint64_t)((unsigned __int128)part * 100000 / whole) : 0;
}
