/* SPDX-License-Identifier: MIT */
#include "base/cursor.h"
#include "unwind/insn.h"

enum {
	FP = 29,
	LR = 30,
	SP = 31,
	INSN_LEN = 4,
	WORD = 8,
};

/* Bits [lo, lo + n) of an instruction. */
static uint32_t bits(uint32_t insn, unsigned lo, unsigned n)
{
	return insn >> lo & ((UINT32_C(1) << n) - 1);
}

static int64_t signed_bits(uint32_t insn, unsigned lo, unsigned n)
{
	int64_t value = bits(insn, lo, n);

	return value & (INT64_C(1) << (n - 1)) ? value - (INT64_C(1) << n) : value;
}

static unsigned rt(uint32_t insn)
{
	return bits(insn, 0, 5);
}

static unsigned rn(uint32_t insn)
{
	return bits(insn, 5, 5);
}

static unsigned rt2(uint32_t insn)
{
	return bits(insn, 10, 5);
}

static bool is_stack_access(uint32_t insn)
{
	return rn(insn) == SP;
}

static bool is_call(uint32_t insn)
{
	return (insn & 0xfc000000) == 0x94000000     /* bl */
	       || (insn & 0xfefff000) == 0xd63f0000; /* blr, blraa, blrab, blraaz, blrabz */
}

/* What it now points at is the caller's own. */
static void load(struct insn_state *state, unsigned reg, int64_t offset)
{
	insn_load(state, reg, offset);
	if (reg == FP)
		state->fp.known = false;
}

/* ldp/stp of 64-bit registers, relative to sp: the two address bits tell post-index, offset and pre-index. */
static void apply_pair(uint32_t insn, struct insn_state *state)
{
	enum { POST = 1, OFFSET = 2, PRE = 3 } mode = bits(insn, 23, 2);
	int64_t offset = signed_bits(insn, 15, 7) * WORD;
	int64_t at = mode == OFFSET ? offset : 0;

	if (mode == PRE)
		insn_move_sp(state, offset);
	if (bits(insn, 22, 1)) {
		load(state, rt(insn), at);
		load(state, rt2(insn), at + WORD);
	} else {
		insn_store(state, rt(insn), at);
		insn_store(state, rt2(insn), at + WORD);
	}
	if (mode == POST)
		insn_move_sp(state, offset);
}

/* ldr/str of a 64-bit register with pre- or post-index on sp */
static void apply_indexed(uint32_t insn, struct insn_state *state)
{
	bool pre = bits(insn, 11, 1);
	int64_t offset = signed_bits(insn, 12, 9);

	if (pre)
		insn_move_sp(state, offset);
	if (bits(insn, 22, 1))
		load(state, rt(insn), 0);
	else
		insn_store(state, rt(insn), 0);
	if (!pre)
		insn_move_sp(state, offset);
}

/* How far ld1 to ld4 and st1 to st4 of several registers move their base, which is by as many bytes as they move. */
static int64_t moved_by_vectors(uint32_t insn)
{
	static const uint8_t count[16] = {[0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2};

	return count[bits(insn, 12, 4)] * (bits(insn, 30, 1) ? 16 : 8);
}

/*
 * How far ldp/stp or ldr/str of other registers (floating-point ones, 32-bit ones) move sp; 0: not at all. What these hold
 * is of no interest.
 */
static int64_t moves_sp(uint32_t insn)
{
	bool vector = bits(insn, 26, 1);

	if (!is_stack_access(insn))
		return 0;
	if ((insn & 0x3a800000) == 0x28800000) /* ldp, stp, ldpsw with pre- or post-index */
		return signed_bits(insn, 15, 7) * (vector ? 4 << bits(insn, 30, 2) : bits(insn, 31, 1) ? 8 : 4);
	if ((insn & 0x3b200400) == 0x38000400) /* ldr, str of any size likewise */
		return signed_bits(insn, 12, 9);
	if ((insn & 0xbfbf0000) == 0x0c9f0000)
		return moved_by_vectors(insn);
	return 0;
}

static void lose_return_address(struct insn_state *state)
{
	state->lost |= UINT64_C(1) << LR;
	state->saved[LR].known = false;
}

static int64_t added_immediate(uint32_t insn)
{
	int64_t imm = (int64_t)bits(insn, 10, 12) << (bits(insn, 22, 1) ? 12 : 0);

	return bits(insn, 30, 1) ? -imm : imm;
}

/* add/sub sp, sp or fp, #imm; false for other sources */
static bool apply_to_sp(uint32_t insn, struct insn_state *state)
{
	if (rn(insn) == FP)
		return insn_sp_from_fp(state, added_immediate(insn));
	insn_move_sp(state, added_immediate(insn));
	return rn(insn) == SP;
}

/* A frame whose size or place is computed. */
static bool computes_sp(uint32_t insn)
{
	return (insn & 0xbfe0001f) == 0x8b20001f                                   /* add or sub sp, x, y */
	       || ((insn & 0x9f80001f) == 0x9200001f && bits(insn, 29, 2) != 3) /* and, orr, eor sp, x, #imm */
	       || ((insn & 0xbfa00000) == 0x0c800000 && is_stack_access(insn) && bits(insn, 16, 5) != 31) /* st1, …, [sp], x */
	       || (insn & 0xffa0f01f) == 0x0420501f; /* addvl, addpl sp, x, #imm */
}

/* Computes a register, or loads it from elsewhere than the stack. */
static bool sets(uint32_t insn, unsigned reg)
{
	if ((insn & 0x1c000000) == 0x10000000 || (insn & 0x0e000000) == 0x0a000000)
		return rt(insn) == reg;
	if (is_stack_access(insn))
		return false;
	if ((insn & 0xfe400000) == 0xa8400000) /* ldp */
		return rt(insn) == reg || rt2(insn) == reg;
	return (insn & 0xffc00000) == 0xf9400000 && rt(insn) == reg; /* ldr x, [y, #imm] */
}

static void apply_to_others(uint32_t insn, struct insn_state *state)
{
	if ((insn & 0xbf8003ff) == (0x91000000 | SP << 5 | FP)) /* add or sub fp, sp, #imm */
		insn_fp_from_sp(state, added_immediate(insn));
	else if (sets(insn, FP))
		state->fp.known = false;
	else if (sets(insn, LR))
		lose_return_address(state);
	insn_move_sp(state, moves_sp(insn));
}

/* A function saves its return address before it makes calls: storing it after a call does not save the original. */
static bool saves_lost_address(uint32_t insn, const struct insn_state *state)
{
	bool pair = (insn & 0xfe400000) == 0xa8000000 && (rt(insn) == LR || rt2(insn) == LR);
	bool single = ((insn & 0xffe00400) == 0xf8000400 || (insn & 0xffc00000) == 0xf9000000) && rt(insn) == LR;

	return (pair || single) && is_stack_access(insn) && state->lost >> LR & 1;
}

/* What an instruction does to sp and to the registers that are loaded from the stack. */
static bool apply_data(uint32_t insn, struct insn_state *state)
{
	if (is_call(insn)) {
		lose_return_address(state);
		return true;
	}
	if (saves_lost_address(insn, state)) /* the start of another function */
		return false;
	if ((insn & 0xfe000000) == 0xa8000000 && bits(insn, 23, 2) != 0 && is_stack_access(insn))
		apply_pair(insn, state);
	else if ((insn & 0xffa00400) == 0xf8000400 && is_stack_access(insn))
		apply_indexed(insn, state);
	else if ((insn & 0xffc00000) == 0xf9400000 && is_stack_access(insn)) /* ldr x, [sp, #imm] */
		load(state, rt(insn), (int64_t)bits(insn, 10, 12) * WORD);
	else if ((insn & 0xffc00000) == 0xf9000000 && is_stack_access(insn)) /* str x, [sp, #imm] */
		insn_store(state, rt(insn), (int64_t)bits(insn, 10, 12) * WORD);
	else if ((insn & 0xbf80001f) == 0x9100001f) /* add or sub to sp */
		return apply_to_sp(insn, state);
	else if (computes_sp(insn))
		return false;
	else
		apply_to_others(insn, state);
	return true;
}

static bool is_return(uint32_t insn)
{
	return insn == (0xd65f0000 | LR << 5) || insn == 0xd65f0bff || insn == 0xd65f0fff; /* ret, retaa, retab */
}

/* Jumps through a register, traps, and invalid instructions. */
static bool is_stop(uint32_t insn)
{
	if ((insn & 0xfe000000) == 0xd6000000) /* br, ret through another register, eret */
		return !is_call(insn);
	if ((insn & 0xff000000) == 0xd4000000) /* svc returns; brk and hlt do not */
		return bits(insn, 21, 3) != 0;
	return insn <= 0xffff; /* udf */
}

/* Instructions at the start of functions, or padding: after a call, a sign that it does not return. */
static bool starts_function(uint32_t insn)
{
	return (insn & 0xffc003e0) == 0xa98003e0     /* stp x, y, [sp, #-n]! */
	       || (insn & 0xff8003ff) == 0xd10003ff  /* sub sp, sp, #n */
	       || (insn & 0xfffff01f) == 0xd503201f; /* hints: nop, paciasp, bti */
}

static bool step(const uint8_t *code, size_t len, uint64_t address, struct insn_state *state, struct insn *out)
{
	struct cursor c = cursor_init(code, len);
	uint32_t insn = cursor_u32(&c);

	if (c.bad || address % INSN_LEN || (state->after_call && starts_function(insn)))
		return false;
	state->after_call = is_call(insn);
	out->len = INSN_LEN;
	if (is_return(insn)) {
		out->flow = INSN_RETURN;
	} else if ((insn & 0xfc000000) == 0x14000000) { /* b */
		out->flow = INSN_JUMP;
		out->target = address + (uint64_t)(signed_bits(insn, 0, 26) * INSN_LEN);
	} else if ((insn & 0xff000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
		out->flow = INSN_BRANCH;
		out->target = address + (uint64_t)(signed_bits(insn, 5, 19) * INSN_LEN);
	} else if ((insn & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		out->flow = INSN_BRANCH;
		out->target = address + (uint64_t)(signed_bits(insn, 5, 14) * INSN_LEN);
	} else if (is_stop(insn)) {
		out->flow = INSN_STOP;
	} else {
		return apply_data(insn, state);
	}
	return true;
}

static bool follows_call(const uint8_t *before, size_t len, uint64_t address, uint64_t *target)
{
	struct cursor c = cursor_init(before, len);
	uint32_t insn;

	*target = 0;
	if (len < INSN_LEN || address % INSN_LEN)
		return false;
	cursor_skip(&c, len - INSN_LEN);
	insn = cursor_u32(&c);
	if ((insn & 0xfc000000) == 0x94000000)
		*target = address - INSN_LEN + (uint64_t)(signed_bits(insn, 0, 26) * INSN_LEN);
	return is_call(insn);
}

/* adr x30 with the address, and at last br. */
static bool follows_jump(const uint8_t before[static INSN_JUMP_BYTES], uint64_t address)
{
	struct cursor c = cursor_init(before, INSN_JUMP_BYTES);
	bool is_set = false;
	uint32_t insn = 0;

	while (cursor_left(&c)) {
		uint64_t at = address - cursor_left(&c);
		int64_t distance;

		insn = cursor_u32(&c);
		distance = signed_bits(insn, 5, 19) * INSN_LEN + (int64_t)bits(insn, 29, 2);
		is_set = is_set || ((insn & 0x9f00001f) == 0x1000001e && at + (uint64_t)distance == address);
	}
	return is_set && (insn & 0xfffffc1f) == 0xd61f0000;
}

/* mov x8, #93 (exit), also in its 32-bit form, then svc #0. */
static bool is_exit(const uint8_t *code, size_t len)
{
	struct cursor c = cursor_init(code, len);
	bool set = false;

	while (cursor_left(&c) >= INSN_LEN) {
		uint32_t insn = cursor_u32(&c);

		if (insn == 0xd4000001)
			return set;
		if ((insn & 0x7fffffff) == 0x52800ba8)
			set = true;
	}
	return false;
}

/* glibc: bti c, or nop in its place; mov x0, x19, where makecontext() has put the next context; cbnz x0. */
static bool is_context_end(const uint8_t code[static INSN_CONTEXT_BYTES])
{
	struct cursor c = cursor_init(code, INSN_CONTEXT_BYTES);
	uint32_t insn = cursor_u32(&c);

	if (insn == 0xd503245f || insn == 0xd503201f)
		insn = cursor_u32(&c);
	return insn == 0xaa1303e0 && (cursor_u32(&c) & 0xff00001f) == 0xb5000000;
}

const struct insn_ops insn_aarch64 = {
	.is_exit = is_exit,
	.is_context_end = is_context_end,
	.follows_call = follows_call,
	.follows_jump = follows_jump,
	.step = step,
};
