/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WAIT_WORDS_H
#define STAKEOUT_REPORT_WAIT_WORDS_H

#include "model/trace.h"
#include "report/text_format.h"

/*
 * "waits for mutex cache_lock 0x5568… (server+0x4060)", "reads fd 7: …": what these threads do, which compare as equal; with more than
 * one, as several do it. They wait for something that is known.
 */
void wait_put_doing(const struct text *t, const struct trace_thread *const *members, size_t count);

/* ", held by tid 812 worker-3": who has it, named by the traces; nothing where there is nothing to say. */
void wait_put_holder(const struct text *t, const struct trace_thread *const *members, size_t count, const struct trace *const *traces, size_t ntraces);

/* "pid 812 (server)" */
void wait_put_process(const struct text *t, pid_t pid, const char *comm);

/* The thread that owns it, or the only one of the only process that is known to be able to end it, if it is one of these; else NULL. */
const struct trace_thread *wait_find_owner(const struct wait *wait, const struct trace *const *traces, size_t ntraces);

/*
 * For sorting; 0: both wait for the same thing of the same process, which the same thread has; or on descriptors as descriptor_words.h
 * tells; or both for nothing that is known.
 */
int wait_compare(const struct trace_thread *a, const struct trace_thread *b);

#endif
