/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_GO_ROWS_H
#define STAKEOUT_UNWIND_GO_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "elf/go_tables.h"
#include "unwind/cfi.h"

/* Go's own unwind information, which every Go program has, stripped or not: how large a function's frame is at each
 * address. */

enum go_row_kind {
	GO_ROW_PLAIN,    /* `row` is as good as CFI */
	GO_ROW_UNSURE,   /* the function changes stacks, and `row` holds only until it has done so */
	/* The function may be on another stack by now. `row` holds with the sp that it had on the first one: */
	GO_ROW_FRAME,  /* fp, which is that of its frame, tells where that was */
	GO_ROW_SYSTEM, /* the goroutine has it */
	GO_ROW_C, /* a C function was called; how far down the goroutine's stack it is was put where the call was made
		   */
	GO_ROW_MORESTACK, /* the goroutine has it, and the pc at which its function will be tried again */
	GO_ROW_CALLBACK,  /* the other way round: the first one is the thread's, where C is that has called Go */
};

struct go_row {
	enum go_row_kind kind;
	struct cfi_row row;
};

/*
 * The row for an address of the file; unless `exact`, a call ends behind it. False when it is not in a Go function, or
 * the budget (may be NULL) does not suffice.
 */
bool go_rows_find(const struct go_tables *tables, const struct arch *arch, struct budget *budget, uint64_t vaddr,
		  bool exact, struct go_row *out);

/*
 * Calls fn for all rows by rising address. An address at which a call ends has the row for what the call left behind.
 * Stops when fn returns other than 0, and returns that.
 */
typedef int (*go_row_fn)(const struct go_row *row, void *arg);
int go_rows_for_each(const struct go_tables *tables, const struct arch *arch, go_row_fn fn, void *arg);

#endif
