/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_JSON_STATE_H
#define STAKEOUT_REPORT_JSON_STATE_H

#include "model/wait.h"
#include "report/json_writer.h"

/* What only some kinds of waits have, of those that are neither for locks nor for descriptors, and only where it is known. */
void json_wait_state(struct json *j, const struct wait *wait);

#endif
