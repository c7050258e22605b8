/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_DOWNLOAD_LINE_H
#define STAKEOUT_CMD_DOWNLOAD_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One line on a terminal about what is being downloaded, written over and over, and erased at the end. */
struct download_line {
	FILE *out;
	uint64_t next; /* time of the clock at which it is written again; 0: nothing is being downloaded */
	bool shown;
};

/* For debuginfod_options.progress; `arg` is a struct download_line with `out` set. */
void download_line_show(void *arg, const char *label, uint64_t bytes, uint64_t total);

#endif
