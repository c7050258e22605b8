/* SPDX-License-Identifier: MIT */
#include "report/offcpu_totals.h"

const char *offcpu_cause_name(enum offcpu_cause cause)
{
	static const char *const names[OFFCPU_CAUSES] = {
		[OFFCPU_CAUSE_CPU] = "no CPU",
		[OFFCPU_CAUSE_LOCK] = "lock",
		[OFFCPU_CAUSE_CONDITION] = "condition",
		[OFFCPU_CAUSE_FUTEX] = "futex of unknown kind",
		[OFFCPU_CAUSE_DISK] = "disk",
		[OFFCPU_CAUSE_FAULT] = "page fault",
		[OFFCPU_CAUSE_NETWORK] = "network",
		[OFFCPU_CAUSE_PIPE] = "pipe",
		[OFFCPU_CAUSE_EVENTS] = "events",
		[OFFCPU_CAUSE_TIMER] = "timer",
		[OFFCPU_CAUSE_CHILD] = "child",
		[OFFCPU_CAUSE_SIGNAL] = "signal",
		[OFFCPU_CAUSE_TERMINAL] = "terminal",
		[OFFCPU_CAUSE_OTHER] = "other",
	};

	return names[cause];
}

static void add_cause(struct offcpu_totals *totals, const struct offcpu_row *row)
{
	const uint64_t ready = row->cause == OFFCPU_CAUSE_CPU ? row->sum.total_ns : row->sum.runnable_ns;
	struct offcpu_cause_total *cause = &totals->causes[row->cause], *cpu = &totals->causes[OFFCPU_CAUSE_CPU];

	cause->count += row->sum.count;
	cause->total_ns += row->sum.total_ns - ready;
	cpu->total_ns += ready;
	cause->idle_ns += row->idle ? row->sum.total_ns - ready : 0;
	cpu->idle_ns += row->idle ? ready : 0;
}

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

		add_cause(&totals, row);
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
