/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_LIBRARY_H
#define STAKEOUT_BASE_LIBRARY_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Libraries that are loaded when they are needed. The program in one static file (`make static`) loads none: a library brings
 * the machine's C library, which need not go with the one that is linked in.
 */
bool library_loading_built_in(void);

/* Loads it for good, or says why not. */
int library_load(const char *soname, struct err *err, void **out);

/* NULL when it has none of that name. */
void *library_function(void *library, const char *name);

#endif
