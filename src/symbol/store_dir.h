/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_STORE_DIR_H
#define STAKEOUT_SYMBOL_STORE_DIR_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Opens an absolute path as a directory that only this user can change; with `create` it is made if it is missing. What
 * lies in it can be trusted to be this user's. The descriptor, or -errno with a sentence.
 */
int store_dir_open(const char *path, bool create, struct err *err);

#endif
