/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_RENDER_H
#define STAKEOUT_CMD_RENDER_H

#include <stdbool.h>

#include "base/err.h"

/* Pictures of graphs: graphviz's program `dot` makes them of what report_format_dot writes. */

/* By the name of the file that it is for. */
bool render_is_wanted(const char *path);

/* Fails with a sentence that says what to install, when the program is not there. */
int render_check(struct err *err);

/* Makes a picture of all that can be read from one descriptor, and writes it to the other. With the rights of who called. */
int render_svg(int from, int to, struct err *err);

#endif
