/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_EXPR_H
#define STAKEOUT_UNWIND_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "model/mem.h"

/*
 * DWARF expressions, as far as CFI may use them. The stack and the number of operations are bounded, and charged to the
 * budget.
 */

enum expr_end {
	EXPR_OK,               /* *out: the value on top of the stack */
	EXPR_INVALID,          /* malformed, too long, over the budget, or not allowed in CFI */
	EXPR_MISSING_REGISTER, /* *out: the register's number */
	EXPR_UNREADABLE,       /* *out: the address */
};

struct expr_env {
	const struct regs *regs;
	struct mem *mem;
	struct budget *budget; /* or NULL */
	uint64_t bias;         /* added to DW_OP_addr: where the file is loaded minus where it says it is */
	unsigned word;         /* bytes of an address */
};

/* `initial`, unless NULL, is pushed first: the CFA for a register's rule. */
enum expr_end expr_eval(const uint8_t *code, size_t len, const struct expr_env *env, const uint64_t *initial,
			uint64_t *out);

#endif
