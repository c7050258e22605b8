/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_OFFCPU_H
#define STAKEOUT_REPORT_OFFCPU_H

#include <stdbool.h>
#include <stdio.h>

#include "base/chains.h"
#include "base/vec.h"
#include "model/offcpu.h"

/* Reports of `stakeout offcpu`. */

struct offcpu_report_options {
	bool color;
	bool verbose;   /* text: paths in full, and all threads and stacks instead of the heaviest */
	unsigned top;   /* text: show so many of each; 0: the usual number */
	unsigned width; /* text: columns of the terminal that it has to fit into; 0: any */
	bool no_addresses; /* text: of user frames */
	bool hide_idle; /* leave out idle stacks, and in the text idle threads; totals stay complete */
};

/* Write one profile; 0 or -errno. */
int report_offcpu_text(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out);

/* One line; docs/schema/offcpu.schema.json describes it. */
int report_offcpu_json(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out);

/*
 * A line for each row, as flame graph tools read them: "thread;main;work;read;ksys_read_[k];schedule_[k] 1234".
 *
 * The thread's name, user frames from the outermost to the innermost, kernel frames likewise with "_[k]", and after the
 * last space the microseconds, at least 1. A thread that did not block but waited for a CPU (state R) has "[waiting for
 * a CPU]_[k]" innermost, so that preemption is not mistaken for a wait of the function that it hit. What is missing is
 * named: "[incomplete]" outermost in a user stack that ends early, "[no user stack]", "[no kernel stack]_[k]". Where
 * the waker is known, "--" follows, its kernel and user frames from the innermost to the outermost, and its name, as
 * bcc's offwaketime has them. In names ';' becomes ':', and control characters are shown as in the text. The format has
 * no room for losses and notes: the caller has to show them elsewhere.
 */
int report_offcpu_folded(const struct offcpu_profile *profile, const struct offcpu_report_options *options, FILE *out);

/* What a line of --events says of a stack. */
struct offcpu_event_stack {
	const struct stack *kernel;
	const struct stack *user;
	const char *kernel_error;
	const char *user_error;
};

/* The stacks that have a line already, each by its number, which is its index plus one. */
struct offcpu_event_stacks {
	VEC(struct offcpu_event_stack) all;
	struct chains by_content;
};

void offcpu_event_stacks_deinit(struct offcpu_event_stacks *stacks);

/*
 * --events: a line of JSON for each wait, before it one for each of its stacks that is new, between a first line that
 * names the format and a last one with losses and notes; docs/schema/offcpu-events.schema.json describes them. The lines
 * of a wait are not flushed. Stacks are the same when their pointers are, which must stay valid. Returns 0, or -errno when
 * memory is exhausted or the stream has failed, and then -EIO for further lines. Of the profile that it begins with only
 * method, estimate, start and filter are used, of the one that it ends with only duration, totals, losses and notes.
 */
int report_offcpu_events_begin(const struct offcpu_profile *profile, FILE *out);
int report_offcpu_event(struct offcpu_event_stacks *stacks, const struct offcpu_event *event, FILE *out);
int report_offcpu_events_end(const struct offcpu_profile *profile, FILE *out);

#endif
