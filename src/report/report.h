/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_REPORT_H
#define STAKEOUT_REPORT_REPORT_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/trace.h"

struct report_options {
	bool color;
	bool group;	/* threads with identical stacks once (text only) */
	bool registers;
	bool show_sp;
	bool kernel;	/* show kernel stacks */
	bool verbose;	/* errors in full: each module without symbols and why */
};

/* Write one trace; 0 or -errno from the stream. */
int report_text(const struct trace *trace, const struct report_options *options, FILE *out);
int report_json(const struct trace *trace, const struct report_options *options, FILE *out); /* one line */

/* Ends a report: what the stream has not written yet is written. 0 or -errno. */
static inline int report_flush(FILE *out)
{
	if (fflush(out) != 0)
		return errno ? -errno : -EIO;
	return ferror(out) ? -EIO : 0;
}

#endif
