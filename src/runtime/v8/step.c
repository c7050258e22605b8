/* SPDX-License-Identifier: MIT */
#include "runtime/v8/step.h"

#include <endian.h>
#include <string.h>

enum {
	WORD = 8,
	R10 = 10, /* its DWARF number: what x86_64 keeps the return address in while it drops arguments */

	/* aarch64 */
	STP_FP_LR = 0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
	MOV_FP_SP = 0x910003fd,
	LDP_FP_LR = 0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
	RET = 0xd65f03c0,
};

static uint32_t instruction(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	return le32toh(word);
}

/* A call, or a jump that is always taken: what follows is not executed next. */
static bool leaves(uint32_t insn)
{
	return (insn & 0x7c000000) == 0x14000000 || (insn & 0xffdffc1f) == 0xd61f0000 || !(insn & 0xffff0000);
}

/*
 * A function begins with a check of whether it is still good, which ends in a jump, and with what makes its frame; it ends
 * with what drops its frame and arguments, and returns.
 */
static enum v8_frame_state aarch64_state(const uint8_t *code, size_t len)
{
	bool jumped = false;

	if (len >= V8_CODE_BEFORE + 4 && instruction(code) == STP_FP_LR && instruction(code + V8_CODE_BEFORE) == MOV_FP_SP)
		return V8_FRAME_PUSHED;
	for (size_t at = V8_CODE_BEFORE; at + 4 <= len; at += 4) {
		uint32_t insn = instruction(code + at);

		if (insn == STP_FP_LR)
			return V8_FRAME_NONE;
		if (insn == LDP_FP_LR)
			return V8_FRAME_WHOLE;
		if (insn == RET)
			return jumped ? V8_FRAME_WHOLE : V8_FRAME_NONE;
		if (leaves(insn) && ((insn & 0xfffffc1f) != 0xd61f0000 || jumped)) /* but for one br */
			return V8_FRAME_WHOLE;
		jumped |= leaves(insn);
	}
	return V8_FRAME_WHOLE;
}

static bool begins(const uint8_t *code, size_t len, const char *bytes, size_t n)
{
	return len >= n && memcmp(code, bytes, n) == 0;
}

#define BEGINS(code, len, bytes) begins(code, len, bytes, sizeof(bytes) - 1)

/* cmp rcx, imm; jg; ret imm: after the frame is gone, the number of arguments decides how they are dropped. */
static bool is_return(const uint8_t *code, size_t len)
{
	if (BEGINS(code, len, "\x48\x83\xf9") && len > 4)
		return is_return(code + 4, len - 4);
	if (BEGINS(code, len, "\x48\x81\xf9") && len > 7)
		return is_return(code + 7, len - 7);
	if (BEGINS(code, len, "\x7f") && len > 2)
		return BEGINS(code + 2, len - 2, "\xc2");
	return BEGINS(code, len, "\xc2") || BEGINS(code, len, "\xc3");
}

static enum v8_frame_state x86_64_state(const uint8_t *code, size_t len)
{
	static const char push_mov[] = "\x55\x48\x89\xe5";
	const uint8_t *pc = code + V8_CODE_BEFORE;
	size_t left = len - V8_CODE_BEFORE;

	if (BEGINS(pc, left, "\x48\x89\xe5") && pc[-1] == 0x55)
		return V8_FRAME_PUSHED;
	if (is_return(pc, left) || BEGINS(pc, left, "\x41\x5a\x48\x8d\x24\xcc\x41\x52\xc3"))
		return V8_FRAME_NONE;
	if (BEGINS(pc, left, "\x48\x8d\x24\xcc\x41\x52\xc3") || BEGINS(pc, left, "\x41\x52\xc3"))
		return V8_FRAME_SCRATCH;
	/* No other function begins so close behind one's code. */
	return memmem(pc, left, push_mov, sizeof(push_mov) - 1) ? V8_FRAME_NONE : V8_FRAME_WHOLE;
}

enum v8_frame_state v8_frame_state(const struct arch *arch, const uint8_t *code, size_t len)
{
	switch (arch->id) {
	case ARCH_X86_64:
		return x86_64_state(code, len);
	case ARCH_AARCH64:
		return aarch64_state(code, len);
	default:
		return V8_FRAME_WHOLE;
	}
}

/* x86_64 pushes one after the other, so that sp tells what is there; here sp is moved first. */
bool v8_begins_frame(const struct arch *arch, const uint8_t *code, size_t len)
{
	for (size_t at = 0; arch->id == ARCH_AARCH64 && at + 4 <= len; at += 4)
		if (instruction(code + at) == MOV_FP_SP)
			return true;
	return false;
}

/* Code that was not copied is asked for, and the walk done again. */
static enum v8_frame_state read_state(struct walk *w)
{
	uint8_t code[V8_CODE_BEFORE + V8_CODE_BEHIND];

	if (!w->exact)
		return V8_FRAME_WHOLE;
	for (size_t len = sizeof(code); len > V8_CODE_BEFORE; len -= V8_CODE_BEFORE)
		if (walk_read_code(w, w->regs.pc - V8_CODE_BEFORE, code, len))
			return v8_frame_state(w->arch, code, len);
	w->out->data[w->out->len - 1].flags |= FRAME_UNREAD;
	w->is_unsure = true; /* at its beginning or end it would have no frame */
	return V8_FRAME_WHOLE;
}

static enum step_result found(const struct walk *w, struct caller *out, uint64_t pc, uint64_t sp, uint64_t fp)
{
	out->regs.pc = arch_strip_code_pointer(w->arch, pc);
	regs_put(&out->regs, w->arch->dwarf_sp, sp);
	regs_put(&out->regs, w->arch->dwarf_fp, fp);
	out->sp_is_bound = !w->arch->fp_gives_sp;
	return STEP_FOUND;
}

/* The record of frame pointer and return address. */
static enum step_result step_by_record(struct walk *w, uint64_t record, struct caller *out)
{
	uint64_t fp, pc;

	if (!walk_read_word(w, record, &fp) || !walk_read_word(w, record + WORD, &pc)) {
		walk_end_unreadable(w, record);
		return STEP_END;
	}
	out->flags = FRAME_BY_FRAME_POINTER;
	return found(w, out, pc, record + 2 * WORD, fp);
}

/* The frame pointer is the caller's. */
static enum step_result step_without_frame(struct walk *w, enum v8_frame_state state, struct caller *out)
{
	uint64_t sp = w->regs.r[w->arch->dwarf_sp], fp = w->regs.r[w->arch->dwarf_fp], pc;
	unsigned reg = w->arch->ra_in_register ? w->arch->dwarf_ra : R10;
	bool in_register = w->arch->ra_in_register || state == V8_FRAME_SCRATCH;

	out->flags = FRAME_BY_CODE;
	if (in_register && !regs_has(&w->regs, reg)) {
		walk_end_missing(w, reg);
		return STEP_END;
	}
	if (in_register)
		return found(w, out, w->regs.r[reg], sp, fp);
	if (walk_read_word(w, sp, &pc))
		return found(w, out, pc, sp + WORD, fp);
	walk_end_unreadable(w, sp);
	return STEP_END;
}

static bool is_in_stack(const struct walk *w, uint64_t fp)
{
	uint64_t sp = w->regs.r[w->arch->dwarf_sp];
	const struct map_entry *stack = maps_find(w->maps, sp);

	return stack && fp % WORD == 0 && fp >= sp && fp < stack->end;
}

enum step_result v8_step(struct walk *w, struct caller *out)
{
	enum v8_frame_state state = read_state(w);

	if (!regs_has(&w->regs, w->arch->dwarf_fp)) {
		walk_end_missing(w, w->arch->dwarf_fp);
		return STEP_END;
	}
	if (state == V8_FRAME_PUSHED)
		return step_by_record(w, w->regs.r[w->arch->dwarf_sp], out);
	if (state != V8_FRAME_WHOLE)
		return step_without_frame(w, state, out);
	if (!is_in_stack(w, w->regs.r[w->arch->dwarf_fp]))
		return STEP_UNKNOWN;
	return step_by_record(w, w->regs.r[w->arch->dwarf_fp], out);
}
