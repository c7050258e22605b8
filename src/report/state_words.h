/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_STATE_WORDS_H
#define STAKEOUT_REPORT_STATE_WORDS_H

#include "model/trace.h"
#include "report/text_format.h"

/* Words for threads that wait neither for a lock nor for a descriptor, or that run. */

/* True when there are: it runs, or is one of those of wait/states.h. */
bool state_has_words(const struct trace_thread *thread);

/*
 * "sleeps, 3.2 s left", "wait for SIGTERM": what some threads do that state_compare() calls equal. `goes_on`: what the child does
 * that is waited for is told by the caller.
 */
void state_put_doing(const struct text *t, const struct trace_thread *const *members, size_t count, bool goes_on);

/* The only child that it waits for; 0: it waits for none, or for one of several. */
pid_t state_only_child(const struct wait *wait);

/* ", for another 3.2 s at most": of other waits that have a limit, if they are the same for all. */
void state_put_limit(const struct text *t, const struct trace_thread *const *members, size_t count);

/* ", waiting for the disk (ext4 of /dev/vda1)": of threads that wait on descriptors, if it is the same for all. */
void state_put_medium(const struct text *t, const struct trace_thread *const *members, size_t count);

/* For sorting, of two of the same kind; 0: they are told in one sentence. */
int state_compare(const struct trace_thread *a, const struct trace_thread *b);

#endif
