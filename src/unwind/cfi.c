/* SPDX-License-Identifier: MIT */
#include "unwind/cfi.h"

#include <errno.h>
#include <string.h>

#include "unwind/search.h"

enum {
	/* The three that carry an operand in their low 6 bits */
	CFA_PRIMARY_MASK = 0xc0,
	CFA_OPERAND_MASK = 0x3f,
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,

	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,

	MAX_INSTRUCTIONS = 1 << 20, /* instructions of one FDE and its CIE */
	/* Compilers nest remember_state once or twice. */
	MAX_REMEMBERED = 16,
	INSTRUCTION_COST = 2, /* of the budget */
	STATE_COST = 8,       /* on top of that, for copying all rules */
};

/* What instructions change, apart from the location. */
struct rules {
	struct cfi_rule cfa;
	struct cfi_rule regs[ARCH_MAX_DWARF_REGS];
};

/* Runs the program of a CIE, then that of an FDE, stopping at every change of location. */
struct program {
	const struct cfi_section *section;
	const struct fde *fde;
	struct cursor code;
	struct cfi_row row;
	bool mended; /* the row: where the caller's sp is */
	uint64_t location; /* where the next row starts */
	bool has_initial;
	struct rules initial; /* what the CIE's program left: for restore */
	struct rules remembered[MAX_REMEMBERED];
	unsigned nremembered;
	unsigned ninsns; /* run so far */
	struct budget *budget;
};

static void set_rule(struct program *p, uint64_t reg, struct cfi_rule rule)
{
	if (reg < ARCH_MAX_DWARF_REGS) /* others (vector registers) do not matter to a walk */
		p->row.regs[reg] = rule;
}

static void set_offset(struct program *p, uint64_t reg, enum cfi_rule_kind kind, int64_t offset)
{
	set_rule(p, reg, (struct cfi_rule){.kind = kind, .offset = offset});
}

static void set_register(struct program *p, uint64_t reg, uint64_t other)
{
	uint32_t known = other < ARCH_MAX_DWARF_REGS ? (uint32_t)other : ARCH_MAX_DWARF_REGS;

	set_rule(p, reg, (struct cfi_rule){.kind = CFI_REGISTER_OFFSET, .reg = known});
}

static struct cfi_rule read_expression(struct program *p, enum cfi_rule_kind kind)
{
	struct cursor block = cursor_take(&p->code, cursor_uleb(&p->code));

	return (struct cfi_rule){.kind = kind, .expr_len = (uint32_t)cursor_left(&block), .expr = block.p};
}

static void restore(struct program *p, uint64_t reg)
{
	if (reg < ARCH_MAX_DWARF_REGS)
		p->row.regs[reg] = p->has_initial ? p->initial.regs[reg] : (struct cfi_rule){0};
}

static void set_cfa(struct program *p, uint64_t reg, int64_t offset)
{
	p->row.cfa = (struct cfi_rule){
		.kind = CFI_REGISTER_OFFSET,
		.reg = reg < ARCH_MAX_DWARF_REGS ? (uint32_t)reg : ARCH_MAX_DWARF_REGS,
		.offset = offset,
	};
}

static bool remember_state(struct program *p)
{
	struct rules *rules;

	if (p->nremembered == MAX_REMEMBERED || !budget_take(p->budget, STATE_COST))
		return false;
	rules = &p->remembered[p->nremembered++];
	rules->cfa = p->row.cfa;
	memcpy(rules->regs, p->row.regs, sizeof(rules->regs));
	return true;
}

static bool restore_state(struct program *p)
{
	const struct rules *rules;

	if (p->nremembered == 0 || !budget_take(p->budget, STATE_COST))
		return false;
	rules = &p->remembered[--p->nremembered];
	p->row.cfa = rules->cfa;
	memcpy(p->row.regs, rules->regs, sizeof(rules->regs));
	return true;
}

static bool advance(struct program *p, uint64_t delta)
{
	return !__builtin_mul_overflow(delta, p->fde->cie.code_align, &delta) &&
	       !__builtin_add_overflow(p->location, delta, &p->location);
}

static bool set_location(struct program *p)
{
	uint64_t location;

	if (!record_read_pointer(&p->code, p->section->arch->word, p->fde->cie.pointer_encoding, p->section->bytes.vaddr, p->section->text, &location) ||
	    location < p->location)
		return false;
	p->location = location;
	return true;
}

/* Operands may come from an attacker: products wrap, and the walk checks the results. */
static int64_t factored(const struct program *p, uint64_t operand)
{
	return (int64_t)(operand * (uint64_t)p->fde->cie.data_align);
}

/* The instructions that define the CFA. */
static bool run_cfa_instruction(struct program *p, uint8_t op)
{
	struct cursor *c = &p->code;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = cursor_uleb(c);
		set_cfa(p, reg, (int64_t)cursor_uleb(c));
		return true;
	case CFA_DEF_CFA_SF:
		reg = cursor_uleb(c);
		set_cfa(p, reg, factored(p, (uint64_t)cursor_sleb(c)));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		p->row.cfa = read_expression(p, CFI_EXPRESSION);
		return true;
	}
	if (p->row.cfa.kind != CFI_REGISTER_OFFSET) /* the others change one half of a rule that must be there */
		return false;
	switch (op) {
	case CFA_DEF_CFA_REGISTER:
		set_cfa(p, cursor_uleb(c), p->row.cfa.offset);
		return true;
	case CFA_DEF_CFA_OFFSET:
		p->row.cfa.offset = (int64_t)cursor_uleb(c);
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		p->row.cfa.offset = factored(p, (uint64_t)cursor_sleb(c));
		return true;
	default:
		return false;
	}
}

/* The instructions that give one register a rule. */
static bool run_register_instruction(struct program *p, uint8_t op)
{
	struct cursor *c = &p->code;
	uint64_t reg = cursor_uleb(c);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_offset(p, reg, CFI_AT_CFA_OFFSET, factored(p, cursor_uleb(c)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		set_offset(p, reg, CFI_AT_CFA_OFFSET, factored(p, (uint64_t)cursor_sleb(c)));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_offset(p, reg, CFI_AT_CFA_OFFSET, factored(p, -cursor_uleb(c)));
		return true;
	case CFA_VAL_OFFSET:
		set_offset(p, reg, CFI_CFA_OFFSET, factored(p, cursor_uleb(c)));
		return true;
	case CFA_VAL_OFFSET_SF:
		set_offset(p, reg, CFI_CFA_OFFSET, factored(p, (uint64_t)cursor_sleb(c)));
		return true;
	case CFA_UNDEFINED:
		set_rule(p, reg, (struct cfi_rule){.kind = CFI_UNDEFINED});
		return true;
	case CFA_SAME_VALUE:
		set_rule(p, reg, (struct cfi_rule){.kind = CFI_SAME_VALUE});
		return true;
	case CFA_REGISTER:
		set_register(p, reg, cursor_uleb(c));
		return true;
	case CFA_EXPRESSION:
		set_rule(p, reg, read_expression(p, CFI_AT_EXPRESSION));
		return true;
	case CFA_VAL_EXPRESSION:
		set_rule(p, reg, read_expression(p, CFI_EXPRESSION));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(p, reg);
		return true;
	default:
		return false;
	}
}

static bool run_instruction(struct program *p)
{
	struct cursor *c = &p->code;
	uint8_t op = cursor_u8(c);
	uint8_t operand = op & CFA_OPERAND_MASK;

	switch (op & CFA_PRIMARY_MASK) {
	case CFA_ADVANCE_LOC:
		return advance(p, operand);
	case CFA_OFFSET:
		set_offset(p, operand, CFI_AT_CFA_OFFSET, factored(p, cursor_uleb(c)));
		return true;
	case CFA_RESTORE:
		restore(p, operand);
		return true;
	}
	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_SET_LOC:
		return set_location(p);
	case CFA_ADVANCE_LOC1:
		return advance(p, cursor_u8(c));
	case CFA_ADVANCE_LOC2:
		return advance(p, cursor_u16(c));
	case CFA_ADVANCE_LOC4:
		return advance(p, cursor_u32(c));
	case CFA_MIPS_ADVANCE_LOC8:
		return advance(p, cursor_u64(c));
	case CFA_REMEMBER_STATE:
		return remember_state(p);
	case CFA_RESTORE_STATE:
		return restore_state(p);
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_REGISTER:
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_EXPRESSION:
	case CFA_DEF_CFA_SF:
	case CFA_DEF_CFA_OFFSET_SF:
		return run_cfa_instruction(p, op);
	case CFA_GNU_ARGS_SIZE: /* for exception landing pads only */
		cursor_uleb(c);
		return true;
	case CFA_AARCH64_NEGATE_RA_STATE: /* signatures are removed from return addresses in any case */
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return p->section->arch->id == ARCH_AARCH64;
	default:
		return run_register_instruction(p, op);
	}
}

static bool may_go_on(struct program *p)
{
	return p->ninsns++ < MAX_INSTRUCTIONS && budget_take(p->budget, INSTRUCTION_COST);
}

/*
 * The stubs of aarch64's linkage table push the return address, which belongs to nobody's frame, before they jump to glibc's
 * _dl_runtime_resolve(). Its CFI has that address above the CFA, and does not say that it is popped.
 */
static bool leaves_above_cfa(const struct program *p)
{
	const struct arch *arch = p->section->arch;
	const struct cfi_rule *ra = &p->row.regs[p->row.ra_reg];

	return arch->ra_in_register && p->row.cfa.kind == CFI_REGISTER_OFFSET && p->row.cfa.reg == arch->dwarf_sp &&
	       p->row.regs[arch->dwarf_sp].kind == CFI_UNSPECIFIED && ra->kind == CFI_AT_CFA_OFFSET && ra->offset >= 0;
}

/* Only for who gets the row: the rows that follow are made of what the program says. */
static void mend_row(struct program *p)
{
	p->mended = leaves_above_cfa(p);
	if (p->mended)
		p->row.regs[p->section->arch->dwarf_sp] =
			(struct cfi_rule){.kind = CFI_CFA_OFFSET, .offset = p->row.regs[p->row.ra_reg].offset + p->section->arch->word};
}

static void unmend_row(struct program *p)
{
	if (p->mended)
		p->row.regs[p->section->arch->dwarf_sp] = (struct cfi_rule){.kind = CFI_UNSPECIFIED};
	p->mended = false;
}

/*
 * Runs to the next row; p->row holds it. 1: there is a row; 0: the function's end was reached; -EINVAL: the program is
 * damaged, and what it says from p->row.start on is not known.
 */
static int next_row(struct program *p)
{
	unmend_row(p);
	p->row.start = p->location;
	if (p->row.start >= p->fde->end)
		return 0;
	while (cursor_left(&p->code)) {
		if (!may_go_on(p) || !run_instruction(p) || p->code.bad)
			return -EINVAL;
		if (p->location != p->row.start)
			break;
	}
	if (!cursor_left(&p->code) && p->location == p->row.start)
		p->location = p->fde->end; /* the last row */
	p->row.end = p->location < p->fde->end ? p->location : p->fde->end;
	mend_row(p);
	return 1;
}

static bool run_initial(struct program *p)
{
	p->code = p->fde->cie.program;
	while (cursor_left(&p->code))
		if (!may_go_on(p) || !run_instruction(p) || p->code.bad)
			return false;
	p->initial.cfa = p->row.cfa;
	memcpy(p->initial.regs, p->row.regs, sizeof(p->initial.regs));
	p->has_initial = true;
	return p->location == p->fde->start; /* a CIE knows no locations */
}

static bool program_start(struct program *p, const struct cfi_section *section, const struct fde *fde,
			  struct budget *budget)
{
	p->section = section;
	p->fde = fde;
	p->location = fde->start;
	p->has_initial = p->mended = false;
	p->nremembered = 0;
	p->ninsns = 0;
	p->budget = budget;
	p->row = (struct cfi_row){.ra_reg = fde->cie.ra_reg, .signal_frame = fde->cie.signal_frame};
	if (!run_initial(p))
		return false;
	p->code = fde->program;
	return true;
}

int cfi_find_row(struct cfi_section *section, struct budget *budget, uint64_t address, struct cfi_row *out)
{
	struct program p;
	struct fde fde;
	int ret;

	if (!section->bytes.data)
		return -ENOENT;
	ret = search_fde(section, address, &fde);
	if (ret != 0)
		return ret;
	if (!program_start(&p, section, &fde, budget))
		return -EINVAL;
	while ((ret = next_row(&p)) == 1) {
		if (address >= p.row.end)
			continue;
		*out = p.row;
		return 0;
	}
	return -EINVAL;
}

int cfi_for_each_row(struct cfi_section *section, cfi_row_fn fn, void *arg)
{
	/*
	 * Every instruction of an FDE takes at least a byte, and its CIE has fewer instructions than the FDE has bytes.
	 * Anything that takes more was made to keep the reader busy: a long CIE of many FDEs, or a table that names one
	 * FDE over and over.
	 */
	const uint64_t most = 2 * (uint64_t)section->bytes.len;
	uint64_t ninsns = 0;
	ssize_t count = section->bytes.data ? search_count(section) : 0;
	struct program p;
	struct fde fde;

	if (count < 0)
		return (int)count;
	for (size_t i = 0; i < (size_t)count && ninsns <= most; i++) {
		bool started;

		if (!search_nth(section, i, &fde))
			continue;
		started = program_start(&p, section, &fde, NULL);
		while (started && next_row(&p) == 1) {
			int ret = fn(&p.row, arg);

			if (ret != 0)
				return ret;
		}
		ninsns += p.ninsns;
	}
	return 0;
}
