/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_VIEW_H
#define STAKEOUT_CMD_VIEW_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cmd/name_options.h"
#include "cmd/output.h"
#include "cmd/selection.h"
#include "report/format.h"
#include "trace/tracing.h"

/* From a snapshot to the output: what `stakeout PID` and `stakeout replay` have in common. */

struct view;

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct view_options {
	struct report_options report;
	const struct report_format *format;
	bool ignore_deleted;
	uint32_t depth;	    /* 0: the default */
	const char *output; /* NULL or "-": standard output */
	const char *save;   /* where to write the raw snapshot, or NULL */
	enum color_mode color;
	bool no_demangle;
	bool raw;
	bool no_runtimes;
	bool locals;
	struct selection selection;
	bool long_lines; /* also where the terminal is narrower */
	bool why;        /* only what threads wait for, and deadlocks */
	bool picture;    /* what was made by report_format_dot is shown as one */
	struct name_options naming;
};

/*
 * Writes the report of what is held, with names, in place of the format's own: in a parser, where what it leaves in ordinary memory is
 * lost; or here, without names, when there is none. 0 or -errno.
 */
struct view_writer {
	int (*write)(void *arg, const struct view *view, FILE *out, bool *deadlock, bool *incomplete);
	void *arg;
};

struct view {
	struct view_options options;
	struct view_writer writer; /* may be empty */
	struct output output; /* opened before the first document */
	unsigned documents;   /* written */
	VEC(struct tracing *) held; /* captured, to be shown: several for a format that shows them as one */
	bool borrows;               /* these: somebody else destroys them */
	VEC(struct trace *) traces; /* of these, named */
	bool incomplete;    /* one of them has an incomplete stack */
	bool deadlock;      /* options.why: one was found */
};

/* The options that both commands take; their values start at VIEW_OPTION_FIRST. */
enum {
	VIEW_OPTION_FIRST = 1000,
	VIEW_SHOW_SP,
	VIEW_KERNEL,
	VIEW_NO_KERNEL,
	VIEW_DEPTH,
	VIEW_NO_GROUP,
	VIEW_JSON,
	VIEW_COLOR,
	VIEW_NO_COLOR,
	VIEW_IGNORE_DELETED,
	VIEW_NO_DEMANGLE,
	VIEW_NO_ADDRESSES,
	VIEW_LONG,
	VIEW_BRIEF,
	VIEW_STATE,
	VIEW_NAME,
	VIEW_GREP,
	VIEW_RAW,
	VIEW_NO_RUNTIME,
	VIEW_LOCALS,
	VIEW_OPTION_END,
};

#define VIEW_SHORT_OPTIONS "ro:vh"
/* clang-format off */
/* What all commands take that print a report. */
#define VIEW_OUTPUT_LONG_OPTIONS                                        \
	{"json", no_argument, NULL, VIEW_JSON},                         \
	{"output", required_argument, NULL, 'o'},                       \
	{"color", required_argument, NULL, VIEW_COLOR},                 \
	{"no-color", no_argument, NULL, VIEW_NO_COLOR},                 \
	{"no-demangle", no_argument, NULL, VIEW_NO_DEMANGLE},           \
	NAME_LONG_OPTIONS,                                              \
	{"verbose", no_argument, NULL, 'v'},                            \
	{"help", no_argument, NULL, 'h'}
#define VIEW_LONG_OPTIONS                                               \
	{"registers", no_argument, NULL, 'r'},                          \
	{"show-rsp", no_argument, NULL, VIEW_SHOW_SP},                  \
	{"show-sp", no_argument, NULL, VIEW_SHOW_SP},                   \
	{"kernel", no_argument, NULL, VIEW_KERNEL},                     \
	{"no-kernel", no_argument, NULL, VIEW_NO_KERNEL},               \
	{"depth", required_argument, NULL, VIEW_DEPTH},                 \
	{"no-group", no_argument, NULL, VIEW_NO_GROUP},                 \
	{"ignore-deleted", no_argument, NULL, VIEW_IGNORE_DELETED},     \
	{"no-addresses", no_argument, NULL, VIEW_NO_ADDRESSES},         \
	{"long", no_argument, NULL, VIEW_LONG},                         \
	{"brief", no_argument, NULL, VIEW_BRIEF},                       \
	{"state", required_argument, NULL, VIEW_STATE},                 \
	{"name", required_argument, NULL, VIEW_NAME},                   \
	{"grep", required_argument, NULL, VIEW_GREP},                   \
	{"raw", no_argument, NULL, VIEW_RAW},                           \
	{"no-runtime", no_argument, NULL, VIEW_NO_RUNTIME},             \
	{"locals", no_argument, NULL, VIEW_LOCALS},                     \
	VIEW_OUTPUT_LONG_OPTIONS
/* clang-format on */

extern const char view_help[];

void view_init(struct view *view);
void view_deinit(struct view *view);

/* Takes one option. 1: taken, 0: not one of these, -EINVAL: its value is wrong (said in err). */
int view_option(struct view_options *options, int opt, const char *value, struct err *err);

/* -EINVAL when another one was chosen before. */
int view_choose_format(struct view_options *options, const struct report_format *format, struct err *err);

/* -EINVAL when options exclude each other. */
int view_check(const struct view_options *options, struct err *err);

/* Whether what goes there is to be coloured. */
bool view_has_color(const struct view_options *options, FILE *out);

/* Makes the text fit the terminal that it goes to, if it does and long lines are not wanted. */
void view_fit_terminal(struct view_options *options, FILE *out);

/*
 * Saves the snapshot if that is wanted, has a process without rights name its stacks, and prints them; or holds them for
 * that until view_finish(). The tracing is taken over, also on failure.
 */
int view_show(struct view *view, struct tracing *tracing, struct err *err);

/*
 * The same with what `open` makes of a descriptor and hands to view_hold() in that process: then not even its format can do
 * harm here.
 */
int view_show_opened(struct view *view, int fd, int (*open)(void *arg, struct view *view, struct err *err), void *arg,
		     struct err *err);
int view_hold(struct view *view, struct tracing *tracing, struct err *err);

/* Prints what is held. */
int view_finish(struct view *view, struct err *err);

/* The same without names, and without a parser: for a writer that needs none, also if nothing is held. */
int view_finish_bare(struct view *view, struct err *err);

#endif
