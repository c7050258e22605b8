/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WAIT_WORDS_H
#define STAKEOUT_REPORT_WAIT_WORDS_H

#include "model/trace.h"
#include "report/text_format.h"

/* "mutex cache_lock 0x5568… (server+0x4060)": what it is. */
void wait_put_object(const struct text *t, const struct wait *wait);

/* ", held by tid 812 worker-3": who has it, named by the traces; nothing where there is nothing to say. */
void wait_put_holder(const struct text *t, const struct wait *wait, const struct trace *const *traces, size_t ntraces);

/* The thread that owns it, if it is one of these; else NULL. */
const struct trace_thread *wait_find_owner(const struct wait *wait, const struct trace *const *traces, size_t ntraces);

/* For sorting; 0: both wait for the same thing of the same process, which the same thread has, or both for nothing that is known. */
int wait_compare(const struct trace_thread *a, const struct trace_thread *b);

#endif
