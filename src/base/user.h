/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_USER_H
#define STAKEOUT_BASE_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What the lists of users and groups tell of a user. The program in one static file knows /etc/passwd and /etc/group alone:
 * whatever else the machine asks is in libraries (base/library.h).
 */

/* Cut to fit; false when there is none, and buf is as it was. */
bool user_name(uint32_t uid, char *buf, size_t size);

/* The home directory, an absolute path; for free(). NULL: not known. */
char *user_home(uint32_t uid);

/* This group, then all others that the user belongs to; how many, or -ENOMEM. *out is for free(). */
int user_groups(uint32_t uid, gid_t first, gid_t **out);

/* False: there is no such group. */
bool user_find_group(const char *name, gid_t *out);

#endif
