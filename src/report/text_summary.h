/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_SUMMARY_H
#define STAKEOUT_REPORT_TEXT_SUMMARY_H

#include "report/report.h"
#include "report/text_format.h"

/* The first lines: what was done for each process, and what there is to know about it. */
void text_summary(const struct text *t, const struct report_options *options, const struct trace *const *traces, size_t n);

#endif
