/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/cursor.h"
#include "unwind/insn.h"

enum {
	RSP = 4, /* as instructions number them */
	RBP = 5,
	WORD = 8,

	/* added to opcodes of the maps 0f, 0f 38 and 0f 3a, to tell them from the one-byte ones */
	MAP_0F = 0x0f00,
	MAP_0F38 = 0x3800,
	MAP_0F3A = 0x3a00,
};

/* An instruction, decoded as far as needed for its length and its effect on the stack. */
struct x86_insn {
	unsigned opcode; /* with its map */
	bool rex_w, rex_r, rex_x, rex_b;
	bool operand16, address32;
	bool has_modrm;
	uint8_t mod, reg, rm; /* with the REX bits */
	bool has_sib;
	uint8_t base, index;
	int64_t disp;
	int64_t imm;
};

/* DWARF numbers the first eight registers differently. */
static const uint8_t to_dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static bool has_modrm(unsigned opcode)
{
	switch (opcode) {
	case 0x00 ... 0x3f:
		return (opcode & 7) < 4;
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x80 ... 0x8f:
	case 0xc0 ... 0xc1:
	case 0xc6 ... 0xc7:
	case 0xd0 ... 0xd3:
	case 0xd8 ... 0xdf:
	case 0xf6 ... 0xf7:
	case 0xfe ... 0xff:
		return true;
	case MAP_0F + 0x05 ... MAP_0F + 0x0b:
	case MAP_0F + 0x30 ... MAP_0F + 0x37:
	case MAP_0F + 0x77:
	case MAP_0F + 0x80 ... MAP_0F + 0x8f:
	case MAP_0F + 0xa0 ... MAP_0F + 0xa2:
	case MAP_0F + 0xa8 ... MAP_0F + 0xaa:
	case MAP_0F + 0xc8 ... MAP_0F + 0xcf:
		return false;
	default:
		return opcode >= MAP_0F;
	}
}

/* Bytes of the immediate; for the few that depend on the ModRM byte, d->reg decides. */
static unsigned immediate_size(const struct x86_insn *d)
{
	unsigned full = d->operand16 ? 2 : 4;

	switch (d->opcode) {
	case 0x00 ... 0x3f:
		return (d->opcode & 7) == 4 ? 1 : (d->opcode & 7) == 5 ? full : 0;
	case 0x68:
	case 0x69:
	case 0x81:
	case 0xa9:
	case 0xc7:
		return full;
	case 0x6a ... 0x6b:
	case 0x70 ... 0x80:
	case 0x83:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xc0 ... 0xc1:
	case 0xc6:
	case 0xcd:
	case 0xe0 ... 0xe7:
	case 0xeb:
		return 1;
	case 0xa0 ... 0xa3:
		return d->address32 ? 4 : 8;
	case 0xb8 ... 0xbf:
		return d->rex_w ? 8 : full;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xe8 ... 0xe9:
	case MAP_0F + 0x80 ... MAP_0F + 0x8f:
		return 4; /* relative to the next instruction, whatever the prefixes */
	case 0xf6:
		return (d->reg & 7) < 2 ? 1 : 0;
	case 0xf7:
		return (d->reg & 7) < 2 ? full : 0;
	case MAP_0F + 0x70 ... MAP_0F + 0x73:
	case MAP_0F + 0xa4:
	case MAP_0F + 0xac:
	case MAP_0F + 0xba:
	case MAP_0F + 0xc2:
	case MAP_0F + 0xc4 ... MAP_0F + 0xc6:
	case MAP_0F3A ... MAP_0F3A + 0xff:
		return 1;
	default:
		return 0;
	}
}

/* Not instructions in 64-bit mode. */
static bool is_invalid(unsigned opcode)
{
	switch (opcode) {
	case 0x00 ... 0x3f:
		return (opcode & 7) > 5;
	case 0x60 ... 0x61:
	case 0x82:
	case 0x9a:
	case 0xce:
	case 0xd4 ... 0xd6:
	case 0xea:
	case MAP_0F + 0x04:
		return true;
	default:
		return false;
	}
}

static unsigned map_of(uint8_t number)
{
	switch (number) {
	case 1:
		return MAP_0F;
	case 2:
		return MAP_0F38;
	case 3:
		return MAP_0F3A;
	default:
		return 0;
	}
}

/* VEX and EVEX carry the map and the REX bits inverted; none of their instructions moves the stack pointer. */
static bool decode_vector_prefix(struct cursor *c, uint8_t prefix, struct x86_insn *d)
{
	unsigned map = MAP_0F;

	if (prefix == 0xc5) {
		cursor_u8(c);
	} else if (prefix == 0xc4) {
		map = map_of(cursor_u8(c) & 0x1f);
		cursor_u8(c);
	} else {
		map = map_of(cursor_u8(c) & 0x07);
		cursor_skip(c, 2);
	}
	d->opcode = map + cursor_u8(c);
	return map != 0;
}

static void decode_rex(uint8_t rex, struct x86_insn *d)
{
	d->rex_w = rex & 8;
	d->rex_r = rex & 4;
	d->rex_x = rex & 2;
	d->rex_b = rex & 1;
}

static bool decode_opcode(struct cursor *c, struct x86_insn *d)
{
	for (;;) {
		uint8_t byte = cursor_u8(c);

		if (c->bad)
			return false;
		switch (byte) {
		case 0x66:
			d->operand16 = true;
			continue;
		case 0x67:
			d->address32 = true;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			continue;
		case 0x62:
		case 0xc4:
		case 0xc5:
			return decode_vector_prefix(c, byte, d);
		case 0x40 ... 0x4f:
			decode_rex(byte, d);
			byte = cursor_u8(c);
			break;
		}
		d->opcode = byte;
		if (byte != 0x0f)
			return !is_invalid(d->opcode);
		byte = cursor_u8(c);
		d->opcode = byte == 0x38   ? MAP_0F38 + cursor_u8(c)
			    : byte == 0x3a ? MAP_0F3A + cursor_u8(c)
					   : MAP_0F + byte;
		return !is_invalid(d->opcode);
	}
}

static void decode_modrm(struct cursor *c, struct x86_insn *d)
{
	uint8_t modrm = cursor_u8(c);
	bool disp32;

	d->has_modrm = true;
	d->mod = modrm >> 6;
	d->reg = (modrm >> 3 & 7) | d->rex_r << 3;
	d->rm = (modrm & 7) | d->rex_b << 3;
	if (d->mod == 3)
		return;
	disp32 = d->mod == 2 || (d->mod == 0 && (d->rm & 7) == 5);
	if ((d->rm & 7) == 4) {
		uint8_t sib = cursor_u8(c);

		d->has_sib = true;
		d->base = (sib & 7) | d->rex_b << 3;
		d->index = (sib >> 3 & 7) | d->rex_x << 3;
		disp32 |= d->mod == 0 && (sib & 7) == 5;
	}
	if (disp32)
		d->disp = cursor_sint(c, 4);
	else if (d->mod == 1)
		d->disp = cursor_sint(c, 1);
}

static bool decode(struct cursor *c, struct x86_insn *d)
{
	unsigned size;

	*d = (struct x86_insn){0};
	if (!decode_opcode(c, d))
		return false;
	if (has_modrm(d->opcode))
		decode_modrm(c, d);
	size = immediate_size(d);
	if (size == 3)
		cursor_skip(c, size); /* enter */
	else if (size)
		d->imm = cursor_sint(c, size);
	return !c->bad;
}

/* [rsp + disp] */
static bool is_stack_slot(const struct x86_insn *d)
{
	return d->has_sib && d->base == RSP && d->index == RSP && d->mod != 3;
}

/* The register that an instruction computes, of those that compilers compute frame pointers with; 16: none. */
static unsigned computed(const struct x86_insn *d)
{
	switch (d->opcode) {
	case 0x00 ... 0x37: /* add, or, adc, sbb, and, sub, xor */
		return d->opcode & 2 ? d->reg : d->mod == 3 ? d->rm : 16;
	case 0x81:
	case 0x83:
		return d->mod == 3 && d->reg != 7 ? d->rm : 16;
	case 0x89:
	case 0xc7:
		return d->mod == 3 ? d->rm : 16;
	case 0x8b:
	case 0x8d:
		return d->reg;
	case 0xb8 ... 0xbf:
		return (d->opcode & 7) | d->rex_b << 3;
	default:
		return 16;
	}
}

/* mov rbp, rsp; lea rbp, [rsp + d] */
static bool sets_fp_from_sp(const struct x86_insn *d)
{
	return (d->opcode == 0x89 && d->reg == RSP) || (d->opcode == 0x8b && d->mod == 3 && d->rm == RSP) ||
	       (d->opcode == 0x8d && is_stack_slot(d));
}

static void apply_to_fp(const struct x86_insn *d, struct insn_state *state)
{
	if (computed(d) != RBP)
		return;
	if (sets_fp_from_sp(d))
		insn_fp_from_sp(state, d->disp);
	else
		state->fp.known = false;
}

/* Instructions other than push and pop that set or move the stack pointer; false when the result is unknown. */
static bool apply_to_sp(const struct x86_insn *d, struct insn_state *state)
{
	switch (d->opcode) {
	case 0x81:
	case 0x83:
		if (d->mod != 3 || d->rm != RSP || d->reg == 7) /* cmp */
			return true;
		if (d->reg != 0 && d->reg != 5)
			return false;
		insn_move_sp(state, d->reg == 0 ? d->imm : -d->imm);
		return true;
	case 0x8d: /* lea */
		if (d->reg != RSP)
			return true;
		if (is_stack_slot(d))
			insn_move_sp(state, d->disp);
		else if (!d->has_sib && d->rm == RBP && d->mod != 0)
			return insn_sp_from_fp(state, d->disp);
		else
			return false;
		return true;
	case 0x89: /* mov to r/m */
		if (d->rex_w && is_stack_slot(d))
			insn_store(state, to_dwarf[d->reg], d->disp);
		if (d->mod != 3 || d->rm != RSP)
			return true;
		return d->reg == RBP && insn_sp_from_fp(state, 0);
	case 0x8b: /* mov from r/m */
		if (d->reg == RSP)
			return d->mod == 3 && d->rm == RBP && insn_sp_from_fp(state, 0);
		if (d->rex_w && is_stack_slot(d))
			insn_load(state, to_dwarf[d->reg], d->disp);
		return true;
	default:
		return true;
	}
}

static bool apply_pop(const struct x86_insn *d, struct insn_state *state)
{
	unsigned reg = (d->opcode & 7) | d->rex_b << 3;

	insn_load(state, to_dwarf[reg], 0);
	insn_move_sp(state, WORD);
	if (reg == RBP)
		state->fp.known = false;
	return reg != RSP;
}

static bool apply_group_ff(const struct x86_insn *d, struct insn_state *state, struct insn *out)
{
	switch (d->reg & 7) {
	case 4: /* computed jump: a switch or a tail call */
	case 5:
		out->flow = INSN_STOP;
		return true;
	case 6:
		insn_move_sp(state, -WORD);
		return true;
	default:
		return true;
	}
}

static bool apply(const struct x86_insn *d, struct insn_state *state, uint64_t next, struct insn *out)
{
	out->target = next + (uint64_t)d->imm;
	switch (d->opcode) {
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a:
	case 0x9c:
		insn_move_sp(state, -WORD);
		return true;
	case 0x58 ... 0x5f:
		return apply_pop(d, state);
	case 0x8f:
	case 0x9d:
		insn_move_sp(state, WORD);
		return true;
	case 0xc9: /* leave */
		if (!insn_sp_from_fp(state, 0))
			return false;
		insn_load(state, to_dwarf[RBP], 0);
		insn_move_sp(state, WORD);
		state->fp.known = false;
		return true;
	case 0xc2 ... 0xc3:
		out->flow = INSN_RETURN;
		return true;
	case 0xe9:
	case 0xeb:
		out->flow = INSN_JUMP;
		return true;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
	case MAP_0F + 0x80 ... MAP_0F + 0x8f:
		out->flow = INSN_BRANCH;
		return true;
	case 0xff:
		return apply_group_ff(d, state, out);
	case 0xc8: /* enter */
	case 0xca ... 0xcc:
	case 0xcf:
	case 0xf4:          /* hlt */
	case MAP_0F + 0x0b: /* ud2 */
		out->flow = INSN_STOP;
		return true;
	default:
		apply_to_fp(d, state);
		return apply_to_sp(d, state);
	}
}

/* Instructions at the start of functions, or padding: after a call, a sign that it does not return. */
static bool starts_function(const struct x86_insn *d)
{
	switch (d->opcode) {
	case 0x50 ... 0x57:
	case 0x90:
	case 0xcc:
	case MAP_0F + 0x1e: /* endbr64 */
	case MAP_0F + 0x1f: /* nop */
		return true;
	case 0x81:
	case 0x83: /* sub from rsp */
		return d->mod == 3 && d->rm == RSP && d->reg == 5;
	default:
		return false;
	}
}

static bool is_call(const struct x86_insn *d)
{
	return d->opcode == 0xe8 || (d->opcode == 0xff && (d->reg & 7) == 2);
}

static bool step(const uint8_t *code, size_t len, uint64_t address, struct insn_state *state, struct insn *out)
{
	struct cursor c = cursor_init(code, len < 15 ? len : 15);
	struct x86_insn d;

	if (!decode(&c, &d) || (state->after_call && starts_function(&d)))
		return false;
	state->after_call = is_call(&d);
	out->len = (unsigned)cursor_offset(&c);
	return apply(&d, state, address + out->len, out);
}

/* call *r/m of exactly this length */
static bool is_indirect_call(const uint8_t *insn, size_t len)
{
	struct cursor c = cursor_init(insn, len);
	struct x86_insn d;

	return insn[0] == 0xff && decode(&c, &d) && is_call(&d) && cursor_left(&c) == 0;
}

static bool follows_call(const uint8_t *before, size_t len, uint64_t address, uint64_t *target)
{
	const uint8_t *end = before + len;

	*target = 0;
	if (len >= 5 && end[-5] == 0xe8) {
		struct cursor c = cursor_init(end - 4, 4);

		*target = address + (uint64_t)cursor_sint(&c, 4);
		return true;
	}
	for (size_t n = INSN_MIN_CALL; n <= len; n++)
		if (is_indirect_call(end - n, n))
			return true;
	return false;
}

/* mov $60 (exit) to eax or al, then syscall. */
static bool is_exit(const uint8_t *code, size_t len)
{
	static const uint8_t to_eax[] = {0xb8, 60, 0, 0, 0}, to_al[] = {0xb0, 60}, call[] = {0x0f, 0x05};
	const uint8_t *at = memmem(code, len, to_eax, sizeof(to_eax));

	if (!at)
		at = memmem(code, len, to_al, sizeof(to_al));
	return at && memmem(at, len - (size_t)(at - code), call, sizeof(call));
}

/*
 * glibc: mov %rbx, %rsp, where makecontext() has put the next context; then mov (%rsp), %rdi, or first a look whether
 * there is a shadow stack. It may begin with endbr64.
 */
static bool is_context_end(const uint8_t code[static INSN_CONTEXT_BYTES])
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, set_sp[] = {0x48, 0x89, 0xdc},
			     load[] = {0x48, 0x8b, 0x3c, 0x24}, look[] = {0x64, 0xf7, 0x04, 0x25};

	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		code += sizeof(endbr);
	return memcmp(code, set_sp, sizeof(set_sp)) == 0 &&
	       (memcmp(code + sizeof(set_sp), load, sizeof(load)) == 0 ||
		memcmp(code + sizeof(set_sp), look, sizeof(look)) == 0);
}

const struct insn_ops insn_x86_64 = {
	.is_exit = is_exit, .is_context_end = is_context_end, .follows_call = follows_call, .step = step};
