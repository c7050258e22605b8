/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_WATCH_WORDS_H
#define STAKEOUT_REPORT_WATCH_WORDS_H

#include "report/watch.h"
#include "report/why_words.h"

/* The pieces that the text of a round and that of the summary have in common. */

/* To say what threads do as `stakeout why` does. */
struct why_report watch_why_report(const struct watch_report *report, const struct report_options *options, FILE *out);

/* "tid 812 worker-3", with its process if there are several. */
void watch_put_thread(const struct why_report *r, const struct watched_thread *t);

/* The same, or "3 threads". */
void watch_put_threads(const struct why_report *r, const struct watched_thread *const *members, size_t count);

/* What a group does, and for whom it waits: "waits for …, held by …". */
void watch_put_doing(const struct why_report *r, const struct watched_thread *const *members, size_t count);

/* "98 % CPU", "0.3 % CPU", "CPU not known" */
void watch_put_share(const struct text *t, int64_t share);

/* The function that tells where it is, for people; "" when that is not known. */
void watch_name_place(const struct trace_thread *t, char out[static WATCH_PLACE]);

/* "BEFOREread_request ← serve ← main": the function that tells where it is, and who called that. Nothing without names. */
void watch_put_path(const struct why_report *r, const struct trace_thread *t, const char *before);

#endif
