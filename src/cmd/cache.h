/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_CACHE_H
#define STAKEOUT_CMD_CACHE_H

#include "symbol/store.h"

/*
 * Opens the user's cache, with the limit that $STAKEOUT_CACHE_SIZE sets; creates its directory if it is missing. On
 * failure err has the reason, and the command goes on without a cache.
 */
int cache_open(struct err *err, struct store **out);

#endif
