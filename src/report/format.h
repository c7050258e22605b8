/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_FORMAT_H
#define STAKEOUT_REPORT_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/offcpu.h"
#include "report/report.h"
#include "report/watch.h"

/*
 * A format of reports. To add one: a file for each function, its struct in format.c, and its option in the commands that
 * offer it (cmd/view.c for snapshots, cmd/offcpu_options.c), with man page and completions.
 */
struct report_format {
	const char *option; /* that chooses it; NULL: the default */
	bool is_text;       /* for people: documents have an empty line between them, and --top applies */
	bool has_notes;     /* losses and notes are in it; else they have to be shown elsewhere */

	/* Each writes one document; 0 or -errno. NULL: there is no such report. */
	int (*trace)(const struct trace *trace, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out);
	int (*traces)(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		      FILE *out); /* all in one */
	int (*why)(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		   FILE *out);
	int (*watch_round)(const struct watch_report *report, const struct report_options *options, FILE *out);
	int (*watch_summary)(const struct watch_report *report, const struct report_options *options, FILE *out);
	int (*profile)(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out);
};

extern const struct report_format report_format_text;
extern const struct report_format report_format_json;
extern const struct report_format report_format_folded;
extern const struct report_format report_format_dot;

#endif
