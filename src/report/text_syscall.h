/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_SYSCALL_H
#define STAKEOUT_REPORT_TEXT_SYSCALL_H

#include "model/trace.h"
#include "report/text_format.h"

/*
 * "futex(uaddr=0x7f12, op=FUTEX_WAIT|PRIVATE, val=2, utime=none)": what the thread is in, by names where they are known;
 * without those of the parameters where that would be more than `room` columns (0: any). `args_differ` has bit i set when argument i is not the same in all threads of the group; it is shown as "…".
 */
void text_syscall(const struct text *t, const struct trace_thread *thread, unsigned args_differ, unsigned room);

/* The number of the thread whose end it waits for (pthread_join); 0: it does not. */
pid_t text_syscall_joins(const struct trace_thread *thread);

#endif
