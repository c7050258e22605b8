/* SPDX-License-Identifier: MIT */
#include "unwind/expr.h"

#include <endian.h>

#include "base/cursor.h"

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,

	MAX_STACK = 64,
	MAX_OPS = 4096,  /* branches may go backwards */
	OP_COST = 2,     /* of the budget */
	DEREF_COST = 16, /* on top of that */
};

struct machine {
	const struct expr_env *env;
	struct cursor code;
	uint64_t stack[MAX_STACK];
	unsigned depth;
	uint64_t fault; /* register or address of a failed access */
};

static enum expr_end push(struct machine *m, uint64_t value)
{
	if (m->depth == MAX_STACK)
		return EXPR_INVALID;
	m->stack[m->depth++] = value;
	return EXPR_OK;
}

static enum expr_end push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= ARCH_MAX_DWARF_REGS || !regs_has(m->env->regs, (unsigned)reg)) {
		m->fault = reg;
		return EXPR_MISSING_REGISTER;
	}
	return push(m, m->env->regs->r[reg] + (uint64_t)offset);
}

static enum expr_end pick(struct machine *m, uint64_t index)
{
	return index < m->depth ? push(m, m->stack[m->depth - 1 - index]) : EXPR_INVALID;
}

static enum expr_end deref(struct machine *m, unsigned size)
{
	uint64_t *top = &m->stack[m->depth - 1];
	uint64_t value = 0;

	if (size == 0 || size > sizeof(value) || !budget_take(m->env->budget, DEREF_COST))
		return EXPR_INVALID;
	if (!mem_read_exact(m->env->mem, *top, &value, size)) {
		m->fault = *top;
		return EXPR_UNREADABLE;
	}
	*top = le64toh(value);
	return EXPR_OK;
}

static enum expr_end branch(struct machine *m, int64_t distance)
{
	return cursor_seek(&m->code, cursor_offset(&m->code) + (uint64_t)distance) ? EXPR_OK : EXPR_INVALID;
}

static enum expr_end run_constant(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->code;

	switch (op) {
	case OP_ADDR:
		return push(m, cursor_uint(c, m->env->word) + m->env->bias);
	case OP_CONST1U:
		return push(m, cursor_u8(c));
	case OP_CONST1S:
		return push(m, (uint64_t)cursor_sint(c, 1));
	case OP_CONST2U:
		return push(m, cursor_u16(c));
	case OP_CONST2S:
		return push(m, (uint64_t)cursor_sint(c, 2));
	case OP_CONST4U:
		return push(m, cursor_u32(c));
	case OP_CONST4S:
		return push(m, (uint64_t)cursor_sint(c, 4));
	case OP_CONST8U:
	case OP_CONST8S:
		return push(m, cursor_u64(c));
	case OP_CONSTU:
		return push(m, cursor_uleb(c));
	case OP_CONSTS:
		return push(m, (uint64_t)cursor_sleb(c));
	default:
		return EXPR_INVALID;
	}
}

/* Operations on the top of the stack; the caller has checked that it has one. */
static enum expr_end run_unary(struct machine *m, uint8_t op)
{
	uint64_t *top = &m->stack[m->depth - 1];

	switch (op) {
	case OP_DUP:
		return push(m, *top);
	case OP_DROP:
		m->depth--;
		return EXPR_OK;
	case OP_DEREF:
		return deref(m, m->env->word);
	case OP_DEREF_SIZE:
		return deref(m, cursor_u8(&m->code));
	case OP_ABS:
		*top = (int64_t)*top < 0 ? -*top : *top;
		return EXPR_OK;
	case OP_NEG:
		*top = -*top;
		return EXPR_OK;
	case OP_NOT:
		*top = ~*top;
		return EXPR_OK;
	case OP_PLUS_UCONST:
		*top += cursor_uleb(&m->code);
		return EXPR_OK;
	default:
		return EXPR_INVALID;
	}
}

static uint64_t shift_right_signed(uint64_t value, uint64_t by)
{
	return (uint64_t)((int64_t)value >> (by < 63 ? by : 63));
}

/* Division is signed, modulo unsigned; INT64_MIN / -1 wraps. */
static enum expr_end divide(uint64_t a, uint64_t b, uint64_t *out)
{
	if (b == 0)
		return EXPR_INVALID;
	*out = b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
	return EXPR_OK;
}

/* a OP b, where b was on top. */
static enum expr_end compute(uint8_t op, uint64_t a, uint64_t b, uint64_t *out)
{
	switch (op) {
	case OP_AND:
		*out = a & b;
		return EXPR_OK;
	case OP_DIV:
		return divide(a, b, out);
	case OP_MINUS:
		*out = a - b;
		return EXPR_OK;
	case OP_MOD:
		*out = b ? a % b : 0;
		return b ? EXPR_OK : EXPR_INVALID;
	case OP_MUL:
		*out = a * b;
		return EXPR_OK;
	case OP_OR:
		*out = a | b;
		return EXPR_OK;
	case OP_PLUS:
		*out = a + b;
		return EXPR_OK;
	case OP_SHL:
		*out = b < 64 ? a << b : 0;
		return EXPR_OK;
	case OP_SHR:
		*out = b < 64 ? a >> b : 0;
		return EXPR_OK;
	case OP_SHRA:
		*out = shift_right_signed(a, b);
		return EXPR_OK;
	case OP_XOR:
		*out = a ^ b;
		return EXPR_OK;
	case OP_EQ:
		*out = a == b;
		return EXPR_OK;
	case OP_GE:
		*out = (int64_t)a >= (int64_t)b;
		return EXPR_OK;
	case OP_GT:
		*out = (int64_t)a > (int64_t)b;
		return EXPR_OK;
	case OP_LE:
		*out = (int64_t)a <= (int64_t)b;
		return EXPR_OK;
	case OP_LT:
		*out = (int64_t)a < (int64_t)b;
		return EXPR_OK;
	case OP_NE:
		*out = a != b;
		return EXPR_OK;
	default:
		return EXPR_INVALID;
	}
}

static enum expr_end run_binary(struct machine *m, uint8_t op)
{
	uint64_t *top;

	if (m->depth < 2)
		return EXPR_INVALID;
	top = &m->stack[m->depth - 1];
	if (op == OP_SWAP) {
		uint64_t below = top[-1];

		top[-1] = top[0];
		top[0] = below;
		return EXPR_OK;
	}
	m->depth--;
	return compute(op, top[-1], top[0], &top[-1]);
}

/* The top becomes the third, the second the top, the third the second. */
static enum expr_end rotate(struct machine *m)
{
	uint64_t *top, first;

	if (m->depth < 3)
		return EXPR_INVALID;
	top = &m->stack[m->depth - 1];
	first = top[0];
	top[0] = top[-1];
	top[-1] = top[-2];
	top[-2] = first;
	return EXPR_OK;
}

static enum expr_end run_bra(struct machine *m)
{
	int64_t distance = cursor_sint(&m->code, 2);

	if (m->depth == 0)
		return EXPR_INVALID;
	return m->stack[--m->depth] ? branch(m, distance) : EXPR_OK;
}

static enum expr_end run_op(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->code;
	uint64_t reg;

	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push(m, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_register(m, op - OP_BREG0, cursor_sleb(c));
	if (op == OP_ADDR || (op >= OP_CONST1U && op <= OP_CONSTS))
		return run_constant(m, op);
	switch (op) {
	case OP_NOP:
		return EXPR_OK;
	case OP_BREGX:
		reg = cursor_uleb(c);
		return push_register(m, reg, cursor_sleb(c));
	case OP_PICK:
		return pick(m, cursor_u8(c));
	case OP_OVER:
		return pick(m, 1);
	case OP_ROT:
		return rotate(m);
	case OP_SKIP:
		return branch(m, cursor_sint(c, 2));
	case OP_BRA:
		return run_bra(m);
	case OP_DUP:
	case OP_DROP:
	case OP_DEREF:
	case OP_DEREF_SIZE:
	case OP_ABS:
	case OP_NEG:
	case OP_NOT:
	case OP_PLUS_UCONST:
		return m->depth ? run_unary(m, op) : EXPR_INVALID;
	default:
		return run_binary(m, op);
	}
}

enum expr_end expr_eval(const uint8_t *code, size_t len, const struct expr_env *env, const uint64_t *initial,
			uint64_t *out)
{
	struct machine m = {.env = env, .code = cursor_init(code, len)};

	if (initial)
		push(&m, *initial);
	for (unsigned ops = 0; cursor_left(&m.code); ops++) {
		bool may_run = ops < MAX_OPS && budget_take(env->budget, OP_COST);
		enum expr_end end = may_run ? run_op(&m, cursor_u8(&m.code)) : EXPR_INVALID;

		if (m.code.bad)
			return EXPR_INVALID;
		if (end != EXPR_OK) {
			*out = m.fault;
			return end;
		}
	}
	if (m.depth == 0)
		return EXPR_INVALID;
	*out = m.stack[m.depth - 1];
	return EXPR_OK;
}
