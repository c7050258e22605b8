/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WATCH_H
#define STAKEOUT_REPORT_WATCH_H

#include "model/deadlock.h"
#include "model/watch.h"
#include "report/report.h"

/* What the reports of a watch are made of. */
struct watch_report {
	const struct watch_log *watch;
	const struct trace *const *traces; /* of the last round, with names; none: nothing has moved, and no names are needed */
	size_t n;
	const struct deadlocks *deadlocks; /* in these */
	const struct deadlocks *fresh;	   /* of these, those that were not told before */
};

/* What a round has brought; and what came of all of them. 0 or -errno from the stream. */
int report_watch_round_text(const struct watch_report *report, const struct report_options *options, FILE *out);
int report_watch_summary_text(const struct watch_report *report, const struct report_options *options, FILE *out);
int report_watch_round_json(const struct watch_report *report, const struct report_options *options, FILE *out); /* one line each */
int report_watch_summary_json(const struct watch_report *report, const struct report_options *options, FILE *out);

/* Threads that are told of together: members[first] to members[first + count - 1], and why. */
enum watch_section {
	WATCH_SECTION_BLOCKED, /* never moved: somebody has what they wait for, or the kernel does not let them go */
	WATCH_SECTION_WAITING, /* never moved: they wait for something to happen */
	WATCH_SECTION_HALTED,
	WATCH_SECTION_LOOPS,
	WATCH_SECTION_MOVES,
	WATCH_SECTION_BUSY,
	WATCH_SECTIONS,
};

struct watch_group {
	enum watch_section section;
	size_t first;
	size_t count;
	bool program;  /* they execute a program of a runtime's: others are the runtime's own */
	int64_t share; /* of CPU, of all of them, as watch_cpu_share() tells it */
};

/*
 * All threads that live, by what they have done and where; those of the most interest first. Those that were seen only once are there
 * only in the first round, by what they do.
 */
struct watch_groups {
	VEC_FIELDS(struct watch_group);
	const struct watched_thread **members;
};

/* False when memory is exhausted. */
bool watch_groups_init(struct watch_groups *groups, const struct watch_log *watch, const struct deadlocks *deadlocks);
void watch_groups_deinit(struct watch_groups *groups);

#endif
