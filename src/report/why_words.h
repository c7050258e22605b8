/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WHY_WORDS_H
#define STAKEOUT_REPORT_WHY_WORDS_H

#include "model/deadlock.h"
#include "report/report.h"
#include "report/text_format.h"

/* The sentences of `stakeout why`, for others that say what threads do. */

struct why_report {
	struct text text;
	const struct report_options *options;
	const struct trace *const *traces;
	size_t n;
	const struct deadlocks *deadlocks;
};

/* "tid 812 worker-3", with its process if there are several. */
void why_put_thread(const struct why_report *r, const struct trace_thread *t);

/* "waits for …", "runs", "is in read(fd=7)": what threads do that wait for the same. */
void why_put_doing(const struct why_report *r, const struct trace_thread *const *members, size_t count);

/* " and 3 others like it": how many other things they wait for, of which those that wait for the same are neighbours. Nothing, if for none. */
void why_put_others(const struct text *text, const struct trace_thread *const *members, size_t count);

/* ", held by tid 812 worker-3, which waits for …, held by …": as far as it is known. */
void why_put_chain(const struct why_report *r, const struct trace_thread *const *members, size_t count);

/* "DEADLOCK: 2 threads wait for each other" */
void why_put_headline(const struct text *text, const struct deadlock *d);

/* Each of its threads with its stack. */
void why_put_deadlock(const struct why_report *r, const struct deadlock *d);

#endif
