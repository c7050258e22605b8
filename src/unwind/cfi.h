/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_CFI_H
#define STAKEOUT_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "base/vec.h"
#include "elf/image.h"

/*
 * Call frame information: for each address of code, how to get from a frame's registers to its caller's.
 *
 * A row holds for [start, end). Its CFA (canonical frame address) is computed first, from the frame's own registers;
 * then every register of the caller from the CFA and the frame's own registers. The caller's sp is the CFA unless a
 * rule says otherwise, its pc is what the rule of the return address column gives.
 */
enum cfi_rule_kind {
	/* No instruction named the register. caller.reg = reg when the ABI preserves it, else unknown. */
	CFI_UNSPECIFIED,
	/* The caller's value is lost. For the return address column: there is no caller. */
	CFI_UNDEFINED,
	/* caller.reg = reg */
	CFI_SAME_VALUE,
	/* caller.reg = *(cfa + offset) */
	CFI_AT_CFA_OFFSET,
	/* caller.reg = cfa + offset */
	CFI_CFA_OFFSET,
	/* caller.reg = regs[rule.reg] + offset; as the rule of the CFA: cfa = regs[rule.reg] + offset */
	CFI_REGISTER_OFFSET,
	/* caller.reg = *expr, the CFA being on the expression's stack when it starts */
	CFI_AT_EXPRESSION,
	/* caller.reg = expr, likewise; as the rule of the CFA: cfa = expr, the stack being empty when it starts */
	CFI_EXPRESSION,
};

struct cfi_rule {
	enum cfi_rule_kind kind;
	union {
		uint32_t reg;      /* CFI_REGISTER_OFFSET; may be beyond the registers that are known */
		uint32_t expr_len; /* CFI_AT_EXPRESSION, CFI_EXPRESSION */
	};
	union {
		int64_t offset;
		const uint8_t *expr; /* in the section's bytes */
	};
};

struct cfi_row {
	uint64_t start; /* file addresses */
	uint64_t end;
	uint32_t ra_reg;     /* the return address column; less than ARCH_MAX_DWARF_REGS */
	bool signal_frame;   /* the caller was interrupted, not returned to: its pc is exact */
	struct cfi_rule cfa; /* CFI_UNSPECIFIED, CFI_REGISTER_OFFSET or CFI_EXPRESSION */
	struct cfi_rule regs[ARCH_MAX_DWARF_REGS];
};

enum cfi_kind {
	CFI_EH_FRAME,
	CFI_DEBUG_FRAME,
};

/* Where the code of an FDE starts, and where in the section the FDE is. */
struct fde_entry {
	uint64_t start;
	uint64_t offset;
};

/* The binary search table of .eh_frame_hdr: pairs (start of code, address of FDE), each `width` bytes a field. */
struct fde_table {
	const uint8_t *data;
	size_t len; /* pairs; 0: there is none */
	unsigned width;
	bool is_signed;
	uint64_t base; /* added to every field */
};

/* One .eh_frame or .debug_frame, and the way to find records in it. The bytes are borrowed. */
struct cfi_section {
	enum cfi_kind kind;
	const struct arch *arch;
	struct span bytes;
	uint64_t text; /* what text-relative pointers count from: compilers of PHP and Lua write them; else 0 */
	struct fde_table table;
	VEC(struct fde_entry) index; /* by rising start; built at the first search when there is no table */
	bool indexed;
};

/* `hdr` is the section's .eh_frame_hdr; when it is absent or cannot be used the section is read once instead. */
void cfi_section_init(struct cfi_section *section, enum cfi_kind kind, const struct arch *arch, struct span bytes,
		      struct span hdr);
void cfi_section_deinit(struct cfi_section *section);

/* The address of .eh_frame that .eh_frame_hdr gives. */
bool cfi_eh_frame_address(struct span hdr, uint64_t *address);

/*
 * The row for a file address. -ENOENT when no record covers it, -EINVAL when its record is damaged up to there, or takes
 * more than the budget (may be NULL) has left, -ENOMEM.
 */
int cfi_find_row(struct cfi_section *section, struct budget *budget, uint64_t address, struct cfi_row *out);

/*
 * Calls fn for every row by rising address of the records; a damaged record loses its remaining rows only. Stops early
 * when fn returns other than 0, and returns that; else 0 or -ENOMEM. `row` lives until fn returns.
 */
typedef int (*cfi_row_fn)(const struct cfi_row *row, void *arg);
int cfi_for_each_row(struct cfi_section *section, cfi_row_fn fn, void *arg);

#endif
