/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_FRAME_H
#define STAKEOUT_REPORT_TEXT_FRAME_H

#include "model/stack.h"
#include "report/lacking.h"
#include "report/text_format.h"

/* The lines that all text reports show alike: notes, frames, and modules without symbols. */

struct frame_format {
	bool verbose;                /* paths in full */
	const struct raw_stack *raw; /* show the stack pointers in it; NULL: do not */
};

/* "note: PREFIXnote". */
void text_note(const struct text *t, const char *prefix, const char *note);

/* "  k   ep_poll+0x2d1 [module]". */
void text_kernel_frame(const struct text *t, const struct frame *frame);

/* "  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30". */
void text_user_frame(const struct text *t, const struct frame_format *format, const struct frame *frame, size_t index);

/* Which files have no symbols or no debug info, and what would help: each remedy is given once, for all its files. */
void text_lacking(const struct text *t, const struct lacking *lacking);

#endif
