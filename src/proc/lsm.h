/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_LSM_H
#define STAKEOUT_PROC_LSM_H

#include <stdbool.h>

/* What a security module confines a process by. */
struct lsm_label {
	const char *module; /* "AppArmor", "SELinux"; NULL: none does */
	char name[128];     /* the profile, or the type */
};

/* The text of /proc/PID/attr/current: "docker-default (enforce)", "system_u:system_r:container_t:s0:c1,c2". */
void lsm_parse(const char *text, struct lsm_label *out);

/* The same of the process whose directory this is. */
void lsm_read(int dir_fd, struct lsm_label *out);

#endif
