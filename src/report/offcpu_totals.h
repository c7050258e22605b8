/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_TOTALS_H
#define STAKEOUT_REPORT_OFFCPU_TOTALS_H

#include "model/offcpu.h"

/* Waits for one cause. */
struct offcpu_cause_total {
	uint64_t count; /* 0 also when threads only had to wait for a CPU once they were awake */
	uint64_t total_ns;
	uint64_t idle_ns; /* of it */
};

/* What a profile does not add up by itself. */
struct offcpu_totals {
	uint64_t sleeping_ns; /* of all threads, as in struct offcpu_thread */
	uint64_t uninterruptible_ns;
	uint64_t runnable_ns;
	uint64_t idle_rows;
	uint64_t idle_count; /* waits in these rows */
	uint64_t idle_ns;
	struct offcpu_cause_total causes[OFFCPU_CAUSES]; /* of all rows; the time without a CPU is always that of the CPU */
};

struct offcpu_totals offcpu_totals(const struct offcpu_profile *profile);

/* "lock", "page fault"… */
const char *offcpu_cause_name(enum offcpu_cause cause);

static inline uint64_t offcpu_average(const struct offcpu_sum *sum)
{
	return sum->count ? sum->total_ns / sum->count : 0;
}

/* What --hide-idle leaves out: threads that wait in idle rows only. */
static inline bool offcpu_only_idles(const struct offcpu_thread *thread)
{
	return thread->idle_ns && thread->idle_ns >= thread->sum.total_ns;
}

/* Thousandths of a percent, rounded down. */
uint64_t offcpu_share(uint64_t part, uint64_t whole);

#endif
