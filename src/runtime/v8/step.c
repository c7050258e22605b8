/* SPDX-License-Identifier: MIT */
#include "runtime/v8/step.h"

enum {
	WORD = 8,
	R10 = 10, /* its DWARF number */
};

enum v8_frame_state v8_frame_state(const struct arch *arch, const uint8_t *code, size_t len)
{
	switch (arch->id) {
	case ARCH_X86_64:
		return v8_state_x86_64(code, (uint32_t)len);
	case ARCH_AARCH64:
		return v8_state_aarch64(code, (uint32_t)len);
	default:
		return V8_FRAME_WHOLE;
	}
}

bool v8_begins_frame(const struct arch *arch, const uint8_t *code, size_t len)
{
	return arch->id == ARCH_AARCH64 && v8_begins_aarch64(code, (uint32_t)len);
}

/* Code that was not copied is asked for, and the walk done again. */
static enum v8_frame_state read_state(struct walk *w)
{
	uint8_t code[V8_CODE_BEFORE + V8_CODE_BEHIND];

	if (!w->exact)
		return V8_FRAME_WHOLE;
	for (size_t len = sizeof(code); len > V8_CODE_BEFORE; len -= 4)
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
