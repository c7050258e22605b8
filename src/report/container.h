/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_CONTAINER_H
#define STAKEOUT_REPORT_CONTAINER_H

#include <sys/types.h>

#include "model/container.h"
#include "report/json_writer.h"
#include "report/text_format.h"

/* ", 7 in its namespace, container 0123456789ab (docker), pod UID" or ", cgroup nginx.service": what is known. */
void container_text(const struct text *t, pid_t inner_pid, const struct container *container);

/* The fields "inner_pid", "cgroup" and "container". */
void container_json(struct json *j, pid_t inner_pid, const struct container *container);

#endif
