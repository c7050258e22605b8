/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_READY_H
#define STAKEOUT_WAIT_READY_H

#include "model/trace.h"

/*
 * Who has the CPUs that threads are ready for, among all that was looked at: each was asked at a moment of its own, and who was named by one
 * may have been without a CPU itself when it was asked. To be called when waits_find() was for all of them.
 */
void waits_settle_ready(struct trace *const *traces, size_t n);

#endif
