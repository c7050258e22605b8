/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_FILE_RIGHTS_H
#define STAKEOUT_PRIVILEGE_FILE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Capabilities of the program's own file, by which members of a group may use it on processes of others. The file then
 * belongs to root and the group, mode 0750: whoever may execute it may read every process.
 */

/* What `stakeout setup` gives, and why. */
struct needed_right {
	int capability;
	const char *name; /* "cap_sys_ptrace" */
	const char *without; /* what is lost */
};

/* Those that the running kernel knows; at most MAX_NEEDED_RIGHTS. Returns how many. */
enum { MAX_NEEDED_RIGHTS = 8 };
size_t needed_rights(int last_capability, struct needed_right out[static MAX_NEEDED_RIGHTS]);

/* "cap_bpf", or the number of one that is not needed here. */
const char *capability_name(int capability, char buf[static 16]);

/*
 * How to get these capabilities: "sudo stakeout …, or once: sudo stakeout setup (cap_bpf)". Those that `stakeout setup` does not
 * give leave only the first. Errors say more: remedy.h.
 */
enum { RIGHTS_HELP = 200 };
const char *rights_help(uint64_t capabilities, char buf[static RIGHTS_HELP]);

/* A program that may get them: a regular file of one name, that only root can change. -errno and a sentence, or a descriptor. */
int file_rights_open(const char *path, struct err *err);

/* Which capabilities a file has; 0: none. */
uint64_t file_rights_read(int fd);

/* root:group 0750 with these capabilities. Nobody else can execute it at any time. */
int file_rights_give(int fd, uint64_t capabilities, gid_t group, struct err *err);

/* root:root 0755 without any. */
int file_rights_take_back(int fd, struct err *err);

#endif
