/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_CAUSE_H
#define STAKEOUT_OFFCPU_CAUSE_H

#include "model/offcpu.h"

/*
 * What the waits of a row were for. The kernel stack tells, from the innermost frame on; behind a futex only the user
 * stack can tell a lock from a condition variable, and without a kernel stack there is nothing else. To add a function:
 * a line in the table of cause.c.
 */
enum offcpu_cause offcpu_cause_of(const struct offcpu_row *row);

#endif
