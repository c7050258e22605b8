/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_TEXT_FRAME_H
#define STAKEOUT_REPORT_TEXT_FRAME_H

#include "model/stack.h"
#include "report/lacking.h"
#include "report/text_format.h"

/* The lines that all text reports show alike: notes, frames, and modules without symbols. */

struct frame_format {
	bool verbose;                /* all frames, how they were found, and paths in full */
	bool no_addresses;           /* leave out the column with these */
	const struct raw_stack *raw; /* show the stack pointers in it; NULL: do not */
	const char *indent;          /* before each line; NULL: nothing */
	unsigned width;              /* columns that lines have to fit into; 0: any */
};

/* "note: PREFIXnote". */
void text_note(const struct text *t, const char *prefix, const char *note);

/* "  k   ep_poll+0x2d1 [module]" for each frame, but for those of the way into the kernel. NULL is legal. */
void text_kernel_stack(const struct text *t, const struct frame_format *format, const struct stack *stack);

/*
 * "  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30" for each frame; those of a recursion
 * once, with how often they come. NULL is legal.
 */
void text_user_stack(const struct text *t, const struct frame_format *format, const struct stack *stack);

/* Which files have no symbols or no debug info, and what would help: each remedy is given once, for all its files. */
void text_lacking(const struct text *t, const struct lacking *lacking);

#endif
