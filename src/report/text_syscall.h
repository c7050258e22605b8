/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_SYSCALL_H
#define STAKEOUT_REPORT_TEXT_SYSCALL_H

#include "model/trace.h"
#include "report/text_format.h"

/*
 * "futex(uaddr=0x7f12, op=FUTEX_WAIT|PRIVATE, val=2, utime=none)": what the threads of a group are in, by names where they are
 * known; without those of the parameters where that would be more than `room` columns (0: any). An argument that is not the
 * same in all of them, in what it means or else in its value, is "…".
 */
void text_syscall(const struct text *t, const struct trace_thread *const *members, size_t count, unsigned room);

#endif
