/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_HINT_H
#define STAKEOUT_REPORT_TEXT_HINT_H

#include "model/trace.h"
#include "report/text_format.h"

/* What would give names to the functions of scripts and of code made at run time that have none; each advice once. */
void text_hints(const struct text *t, const struct trace *const *traces, size_t n);

#endif
