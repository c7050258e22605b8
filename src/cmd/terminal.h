/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_TERMINAL_H
#define STAKEOUT_CMD_TERMINAL_H

#include <stdbool.h>

/* Whether there is a terminal, and one that knows more than to write what comes. */
bool terminal_is_capable(int fd);

/* False: there is none, or it does not say. */
bool terminal_size(int fd, unsigned *columns, unsigned *rows);

#endif
