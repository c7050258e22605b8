/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_SCRIPT_H
#define STAKEOUT_TARGET_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

/* Programs that run others: for a person the name of what they run is that of the process. */

/* True for "python3.11", "bash", "java"…: only then is it worth to read the command line. */
bool script_has_interpreter(const char *program);

/*
 * What `program` was told to run by its arguments, of which args[0] is its own name: the name of the file without
 * directories, for Java the main class without its packages, of `python3 -m` the module. NULL: nothing, or `program` is no
 * interpreter. Points into the arguments.
 */
const char *script_name(const char *program, const char *const *args, size_t nargs);

#endif
