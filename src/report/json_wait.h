/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_JSON_WAIT_H
#define STAKEOUT_REPORT_JSON_WAIT_H

#include "model/wait.h"
#include "report/json_writer.h"

/* "waits_for": what a thread waits for, or null. */
void json_wait(struct json *j, const struct wait *wait);

#endif
