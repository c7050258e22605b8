/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_DESCRIPTOR_WORDS_H
#define STAKEOUT_REPORT_DESCRIPTOR_WORDS_H

#include "model/trace.h"
#include "report/text_format.h"

/* Words for threads that wait on descriptors or files: wait_is_on_descriptors(). */

/* "reads fd 7: tcp 10.0.0.5:41022 → 10.0.0.9:5432 (established)"; of several that compare as equal, what they have in common. */
void descriptor_put_doing(const struct text *t, const struct trace_thread *const *members, size_t count);

/* ", written by pid 812 producer": who has the other end, if it is the same for all, and whether that is certain of the only one. */
void descriptor_put_peers(const struct text *t, const struct trace_thread *const *members, size_t count);

/* Each descriptor of the set that a thread waits for, on a line of its own. */
void descriptor_put_set(const struct text *t, const struct trace_thread *thread, const char *indent);

/* For sorting; 0: both do the same with the same thing, or with such as have the same other end. */
int descriptor_wait_compare(const struct trace_thread *a, const struct trace_thread *b);

#endif
