/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_REPORT_H
#define STAKEOUT_REPORT_REPORT_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/deadlock.h"

struct report_options {
	bool color;
	bool group;	/* show threads with identical stacks once (text only) */
	bool registers;
	bool show_sp;
	bool kernel;	/* show kernel stacks */
	bool verbose;	/* all frames, how they were found, and paths in full */
	bool no_addresses; /* of user frames (text only) */
	bool brief;     /* only the table of groups (text only) */
	unsigned height; /* rows of the terminal: with more, a table of groups comes first; 0: there is none */
	unsigned width; /* columns of the terminal that the text has to fit into; 0: any */
};

/* Write one trace, or several as one, and the deadlocks of the look that they are of; 0 or -errno from the stream. */
int report_text(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out);
int report_json(const struct trace *trace, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out); /* one line */

/* Only what each thread waits for, and who is in a deadlock. */
int report_why_text(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		    FILE *out);
int report_why_json(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		    FILE *out);
int report_why_dot(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options,
		   FILE *out); /* a graph, in the language of graphviz */

/*
 * Begins a report. A stream may fail in the middle, when its buffer is full, and reports that at the end, but not why.
 * errno still says why, since nothing else in a report sets it.
 */
static inline void report_begin(void)
{
	errno = 0;
}

/* Whether all of it could be written so far. 0 or -errno. */
static inline int report_status(FILE *out)
{
	if (!ferror(out))
		return 0;
	return errno ? -errno : -EIO;
}

/* Ends a report by flushing the stream. 0 or -errno. */
static inline int report_flush(FILE *out)
{
	if (fflush(out) != 0)
		return errno ? -errno : -EIO;
	return report_status(out);
}

#endif
