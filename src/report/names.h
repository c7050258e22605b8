/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_NAMES_H
#define STAKEOUT_REPORT_NAMES_H

#include "model/snapshot.h"
#include "model/stack.h"

/* The words that reports use for the model's values. A value from a newer saved snapshot is "unknown". */

const char *name_thread_status(enum thread_status status);
const char *name_thread_capture(enum thread_capture capture);

/* "sleeping" for S, and so on. */
const char *name_thread_state(char state);

/* How the frame was found: "cfi", "frame_pointer", "code" or "scan"; NULL for the innermost one and in the kernel. */
const char *name_found_by(const struct frame *frame);

/* How many arguments to show: as many as the system call has, or all when it is unknown. */
unsigned syscall_nargs(const struct syscall_info *info);

#endif
