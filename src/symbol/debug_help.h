/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEBUG_HELP_H
#define STAKEOUT_SYMBOL_DEBUG_HELP_H

/*
 * How to get debug info on the distribution below `root_fd` (-1: our own root), for a file that has a build-id. A
 * constant string.
 */
const char *debug_help(int root_fd);

#endif
