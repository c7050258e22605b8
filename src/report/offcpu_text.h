/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_TEXT_H
#define STAKEOUT_REPORT_OFFCPU_TEXT_H

#include "base/map.h"
#include "report/offcpu.h"
#include "report/offcpu_groups.h"
#include "report/offcpu_totals.h"
#include "report/text_format.h"

/* The parts of the text report, and what they have in common. */

struct offcpu_text {
	struct text text;
	const struct offcpu_report_options *options;
	const struct offcpu_profile *profile;
	struct offcpu_totals totals;
	struct offcpu_groups groups;
	size_t processes;
	pid_t pid; /* the pid of the only process; 0: there are several */
	struct u64map ambiguous; /* hashes of names that processes with different command lines have */
};

/* Counts the processes, and finds those that have a name in common. False when memory is exhausted. */
bool offcpu_find_names(struct offcpu_text *r);

/* The table of threads. False when memory is exhausted. */
bool offcpu_put_threads(const struct offcpu_text *r);

/* The stacks, and how many are left out. */
void offcpu_put_groups(const struct offcpu_text *r);

/* How many of `all` are shown, when `usual` is the usual number. */
size_t offcpu_shown(const struct offcpu_text *r, size_t usual, size_t all);

/* Formats durations: waits can be shorter than anything else that is measured here. */
const char *offcpu_format_wait(uint64_t ns, char buf[DURATION_LEN]);

/* "12.3 %". */
enum { SHARE_LEN = 32 };
const char *offcpu_format_share(uint64_t part, uint64_t whole, char buf[SHARE_LEN]);

/* "100 waits, 1 not over, average 12 ms, p50 11 ms, p99 23 ms, longest 30 ms"; quantiles: NULL when they are not wanted. */
void offcpu_put_waits(FILE *out, const struct offcpu_sum *sum, const struct offcpu_quantiles *quantiles);

struct offcpu_who {
	pid_t pid;
	uint64_t start_ns; /* of the process; 0: not known */
	pid_t tid;         /* 0: the process */
	unsigned nth;      /* of those that had the tid; 0: any */
	const char *name;
	size_t columns; /* that it may take, with its command line where that is needed; 0: any */
};

/* "tid 4712 worker (pid 4711)"; the command line tells processes of one name apart: "tid 4711 server (server --port 1)". */
void offcpu_put_who(const struct offcpu_text *r, const struct offcpu_who *who);

/* "3 processes of postgres, 12 threads"; `who`: one of them. */
void offcpu_put_program(const struct offcpu_text *r, const struct offcpu_who *who, size_t processes, size_t threads);

/* "pid 4711 3.0 s, 4712 2.1 s, and 3 more 1.0 s", the times only if they differ. */
void offcpu_put_processes(const struct offcpu_text *r, const struct offcpu_member *members, size_t n);

/* "tid 4712-4715 worker, 4720 flusher, and 3 more"; or without ranges, but with times: "tid 4712 worker 3.0 s, 4713 2.1 s". */
void offcpu_put_members(const struct offcpu_text *r, const struct offcpu_part *threads, size_t n, bool times);

/* "  3 more threads, 0.4 % of the time (12 ms): HOW": what is not shown, and how much it is. */
void offcpu_put_rest(const struct offcpu_text *r, size_t n, const char *one, const char *many, uint64_t ns,
		     const char *how);

#endif
