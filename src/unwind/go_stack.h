/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_GO_STACK_H
#define STAKEOUT_UNWIND_GO_STACK_H

#include "unwind/go_rows.h"
#include "unwind/walk.h"

/*
 * Go's runtime does its own work, and calls C, on another stack than a goroutine's. The walk is in the function that
 * has changed to it: finds the registers that the function left on the goroutine's stack, as far as they are known, and
 * from then on the walk is no longer on the thread's own stack. False when there is no goroutine, or not what is
 * expected of one: the end is in w->out. The same the other way round for Go that C has called: the registers that are left
 * on the thread's own stack.
 */
bool go_stack_find(struct walk *w, enum go_row_kind kind, const struct cfi_row *row, struct regs *out);

#endif
