/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TIMES_H
#define STAKEOUT_REPORT_TIMES_H

#include <stdio.h>

#include "model/trace.h"

/* Times of threads that are told together. */

/* One of a thread's; -1: it has none. */
typedef int64_t thread_time(const struct snap_thread *thread);

/* Since it last ran; of one that runs, or is ready to, there is none. */
thread_time time_off_cpu;

/* "off-CPU 12.3 s to 14.3 s", between the words that are before and behind it; nothing if none of them has that time. */
void times_put(FILE *out, const char *before, const char *behind, const struct trace_thread *const *members, size_t count, thread_time *time_of);
void times_put_range(FILE *out, const char *before, const char *behind, uint64_t least, uint64_t most);

#endif
