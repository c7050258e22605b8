/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_OUTPUT_H
#define STAKEOUT_CMD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

/*
 * A file that the command line names for writing: --save, -o, --events. It often lies in a directory where others can write
 * too, and who writes is often root. So nothing is written through a symbolic link, into somebody else's file, or into one
 * that has further names; new files of root are for root alone, and so is a saved snapshot, which has memory of the process.
 * Under sudo what is created belongs to who called it; rights that the program's own file gives do not count here.
 * Pipes, devices and the names of open files (/dev/stdout, /dev/fd/3) are opened as they are.
 */
struct output {
	FILE *file;
	const char *path; /* not owned; of a report NULL or "-": standard output */
	bool created;
};

enum output_kind { OUTPUT_REPORT, OUTPUT_SNAPSHOT };

/* What is in it stays until output_empty(). */
int output_open(struct output *output, const char *path, enum output_kind kind, struct err *err);

/* To be called before anything is written. */
int output_empty(const struct output *output, struct err *err);

/* Writes all that can be read from a descriptor. */
int output_copy(const struct output *output, int fd, struct err *err);

/* Fails when something could not be written. The standard output stays open. */
int output_close(struct output *output, struct err *err);

/* Closes it after a failure: nothing is left that could be taken for the whole. */
void output_withdraw(struct output *output);

#endif
