/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEMANGLE_D_H
#define STAKEOUT_SYMBOL_DEMANGLE_D_H

#include <stddef.h>

/*
 * The source form of a D name (_D…), without return type, as gdb shows it, for free(). NULL when it is not one, and
 * when its source form would have more than `limit` bytes.
 */
char *demangle_d(const char *name, size_t limit);

#endif
