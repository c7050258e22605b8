/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_CAUSE_H
#define STAKEOUT_OFFCPU_CAUSE_H

#include "model/offcpu.h"
#include "model/wait.h"

/*
 * What the waits of a row were for. The kernel stack tells, from the innermost frame on; behind a futex only the user
 * stack can tell a lock from a condition variable, and without a kernel stack there is nothing else. To add a function:
 * a line in the table of cause.c.
 */
enum offcpu_cause offcpu_cause_of(const struct offcpu_row *row);

/* What a look at a thread told that was in such a wait: OFFCPU_CAUSE_OTHER if that is none of the others. */
enum offcpu_cause offcpu_cause_of_wait(enum wait_kind kind);

#endif
