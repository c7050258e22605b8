/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_TABLE_H
#define STAKEOUT_REPORT_TEXT_TABLE_H

#include "model/trace.h"
#include "report/group.h"
#include "report/text_format.h"

/*
 * A line for each group: how many threads, in which state, for how long they have not run, their CPU time, their name, and
 * where they are, with the system call. `width` is that of the terminal, 0: any.
 */
void text_table(const struct text *t, const struct groups *groups, unsigned width);

/* The innermost frame of a program that a runtime executes, not of its library if there is another; NULL: there is none. */
const struct frame *text_table_program(const struct stack *stack);

/*
 * The frame that tells where a thread is: the innermost one that is not the C library's, and has a name if any of these has.
 * If there is none, the innermost of all. NULL: there is none at all.
 */
const struct frame *text_table_frame(const struct trace_thread *thread);

#endif
