/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_USER_H
#define STAKEOUT_PROC_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The name of a user, cut to fit; false when there is none, and buf is as it was. The program in one static file knows the
 * users of /etc/passwd alone: whatever else the machine asks is in libraries (base/library.h).
 */
bool user_name(uint32_t uid, char *buf, size_t size);

#endif
