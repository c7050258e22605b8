/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OFFCPU_OPTIONS_H
#define STAKEOUT_CMD_OFFCPU_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cmd/process_args.h"
#include "cmd/view.h"
#include "model/offcpu.h"
#include "offcpu/session.h"

/* What `stakeout offcpu` was asked for. Strings are those of argv. */

struct offcpu_options {
	/* Exactly one of these: some processes, all, or a command, NULL-terminated. */
	struct process_args processes;
	bool all;
	char **command;

	uint64_t duration_ns; /* 0: until it is interrupted, or the command ends */
	struct offcpu_filter filter; /* which waits count */
	bool children;
	bool threads; /* each by itself; false: those of a process together */
	bool wakers;
	bool kernel; /* take kernel stacks */
	bool user;
	enum offcpu_source source;
	bool read_maps; /* --read-maps: the maps of processes are only known once they are read, as before Linux 6.7 */

	bool hide_idle;
	uint32_t top; /* threads and stacks in the text; 0: the default */
	bool events;
	const char *events_path;  /* where to; NULL: to the output, in place of the report */
	struct view_options view; /* of it: format, output, color, no_demangle, long_lines, naming, report.verbose and .no_addresses */
};

extern const char offcpu_help[];

/*
 * Reads the arguments; argv[0] is how the command is called. 0: go on, 1: the help is wanted, -EINVAL or -ENOMEM (said in
 * err; "": getopt has said it). To be ended with offcpu_options_deinit() in any case.
 */
int offcpu_options_read(struct offcpu_options *options, int argc, char **argv, struct err *err);

void offcpu_options_deinit(struct offcpu_options *options);

#endif
