/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEBUG_HELP_H
#define STAKEOUT_SYMBOL_DEBUG_HELP_H

/*
 * How to get debug info for a file that has a build-id: on the distribution below `root_fd` (-1: our own root), if it
 * is where packages put their files. A constant string.
 */
const char *debug_help(int root_fd, const char *path);

#endif
