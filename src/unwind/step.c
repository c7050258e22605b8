/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "unwind/codeinfo.h"
#include "unwind/expr.h"
#include "unwind/go_stack.h"
#include "unwind/insn.h"
#include "unwind/walk.h"

enum {
	MAX_SIGNAL_FRAMES = 64, /* handlers that interrupted handlers */
	MADE_CODE = 32,         /* bytes of code made at run time that are looked at */
};

/* A frame, its row, and the CFA once it is known. */
struct row_step {
	struct walk *w;
	const struct cfi_row *row;
	struct expr_env env;
	uint64_t cfa;
};

/* Why a rule gave no value. */
struct fault {
	enum expr_end end;
	uint64_t what; /* register or address */
};

static bool fail(struct fault *fault, enum expr_end end, uint64_t what)
{
	*fault = (struct fault){.end = end, .what = what};
	return false;
}

static bool end_for_fault(struct walk *w, const struct fault *fault)
{
	switch (fault->end) {
	case EXPR_MISSING_REGISTER:
		return walk_end_missing(w, fault->what);
	case EXPR_UNREADABLE:
		return walk_end_unreadable(w, fault->what);
	default:
		return walk_end(w, STACK_NO_UNWIND_INFO, "the unwind information is damaged");
	}
}

static bool eval_register(const struct row_step *s, const struct cfi_rule *rule, uint64_t *out, struct fault *fault)
{
	if (!regs_has(&s->w->regs, rule->reg))
		return fail(fault, EXPR_MISSING_REGISTER, rule->reg);
	*out = s->w->regs.r[rule->reg] + (uint64_t)rule->offset;
	return true;
}

static bool eval_expression(const struct row_step *s, const struct cfi_rule *rule, const uint64_t *initial,
			    uint64_t *out, struct fault *fault)
{
	enum expr_end end = expr_eval(rule->expr, rule->expr_len, &s->env, initial, out);

	return end == EXPR_OK || fail(fault, end, *out);
}

static bool eval_at(const struct row_step *s, uint64_t address, uint64_t *out, struct fault *fault)
{
	return walk_read_word(s->w, address, out) || fail(fault, EXPR_UNREADABLE, address);
}

/* For when sp is not known: fp points at the frame record, and the row says how far that is from the CFA. */
static bool cfa_from_frame_record(const struct row_step *s, uint64_t *out, struct fault *fault)
{
	const struct arch *arch = s->w->arch;
	const struct cfi_rule *fp = &s->row->regs[arch->dwarf_fp], *ra = &s->row->regs[s->row->ra_reg];

	if (fp->kind != CFI_AT_CFA_OFFSET || ra->kind != CFI_AT_CFA_OFFSET || ra->offset != fp->offset + arch->word)
		return fail(fault, EXPR_MISSING_REGISTER, arch->dwarf_sp);
	if (!regs_has(&s->w->regs, arch->dwarf_fp))
		return fail(fault, EXPR_MISSING_REGISTER, arch->dwarf_fp);
	*out = s->w->regs.r[arch->dwarf_fp] - (uint64_t)fp->offset;
	return true;
}

static bool eval_cfa(const struct row_step *s, uint64_t *out, struct fault *fault)
{
	const struct cfi_rule *rule = &s->row->cfa;

	switch (rule->kind) {
	case CFI_REGISTER_OFFSET:
		if (s->w->sp_is_bound && rule->reg == s->w->arch->dwarf_sp)
			return cfa_from_frame_record(s, out, fault);
		return eval_register(s, rule, out, fault);
	case CFI_EXPRESSION:
		return eval_expression(s, rule, NULL, out, fault);
	default:
		return fail(fault, EXPR_INVALID, 0);
	}
}

/* The caller's value of a register that has a rule. */
static bool eval_rule(const struct row_step *s, unsigned reg, uint64_t *out, struct fault *fault)
{
	const struct cfi_rule *rule = &s->row->regs[reg];
	const struct cfi_rule same = {.kind = CFI_REGISTER_OFFSET, .reg = reg};
	uint64_t address;

	switch (rule->kind) {
	case CFI_UNSPECIFIED:
	case CFI_SAME_VALUE:
		return eval_register(s, &same, out, fault);
	case CFI_AT_CFA_OFFSET:
		return eval_at(s, s->cfa + (uint64_t)rule->offset, out, fault);
	case CFI_CFA_OFFSET:
		*out = s->cfa + (uint64_t)rule->offset;
		return true;
	case CFI_REGISTER_OFFSET:
		return eval_register(s, rule, out, fault);
	case CFI_AT_EXPRESSION:
		return eval_expression(s, rule, &s->cfa, &address, fault) && eval_at(s, address, out, fault);
	case CFI_EXPRESSION:
		return eval_expression(s, rule, &s->cfa, out, fault);
	case CFI_UNDEFINED:
		break;
	}
	return fail(fault, EXPR_INVALID, 0);
}

/* Registers that cannot be recovered are left out: only a later step that needs one will miss it. */
static void find_registers(const struct row_step *s, struct regs *out)
{
	const struct arch *arch = s->w->arch;
	struct fault ignored;
	uint64_t value;

	for (unsigned reg = 0; reg < arch->ndwarf_regs; reg++) {
		enum cfi_rule_kind kind = s->row->regs[reg].kind;

		if (kind == CFI_UNDEFINED || (kind == CFI_UNSPECIFIED && !(arch->callee_saved >> reg & 1)))
			continue;
		if (eval_rule(s, reg, &value, &ignored))
			regs_put(out, reg, value);
	}
	if (s->row->regs[arch->dwarf_sp].kind == CFI_UNSPECIFIED)
		regs_put(out, arch->dwarf_sp, s->cfa);
}

static bool find_return_address(const struct row_step *s, uint64_t *out)
{
	struct walk *w = s->w;
	enum cfi_rule_kind kind = s->row->regs[s->row->ra_reg].kind;
	bool in_register = kind == CFI_UNSPECIFIED || kind == CFI_SAME_VALUE;
	struct fault fault;

	if (kind == CFI_UNDEFINED)
		return walk_end(w, STACK_COMPLETE, "%s", "");
	if (in_register && !w->arch->ra_in_register)
		return walk_end(w, STACK_NO_UNWIND_INFO,
				"the unwind information does not say where the return address is");
	if (in_register && !w->exact)
		return walk_end(w, STACK_NO_PROGRESS,
				"the return address was in a register that a later call has overwritten");
	if (!eval_rule(s, s->row->ra_reg, out, &fault))
		return end_for_fault(w, &fault);
	*out = arch_strip_code_pointer(w->arch, *out);
	return true;
}

/*
 * A step must move towards the stack's base: only a leaf that keeps nothing on the stack (aarch64) may stay in place.
 */
static bool makes_progress(const struct walk *w, const struct caller *caller)
{
	uint64_t sp = w->regs.r[w->arch->dwarf_sp];
	uint64_t next = caller->regs.r[w->arch->dwarf_sp];

	return next > sp || (next == sp && w->exact && caller->regs.pc != w->regs.pc);
}

static bool step_by_row(struct walk *w, const struct cfi_row *row, uint64_t bias, struct caller *out)
{
	struct row_step s = {.w = w, .row = row, .env = {.regs = &w->regs, .mem = w->mem, .budget = w->budget, .bias = bias, .word = w->arch->word}};
	struct fault fault;

	*out = (struct caller){.exact = row->signal_frame};
	/* The outermost frame is marked as such, and may have no sensible CFA. */
	if (row->regs[row->ra_reg].kind == CFI_UNDEFINED)
		return walk_end(w, STACK_COMPLETE, "%s", "");
	if (!eval_cfa(&s, &s.cfa, &fault))
		return end_for_fault(w, &fault);
	if (!find_return_address(&s, &out->regs.pc))
		return false;
	find_registers(&s, &out->regs);
	if (!row->signal_frame && !makes_progress(w, out))
		return walk_end(w, STACK_NO_PROGRESS, "the caller's frame would not be closer to the stack's base");
	return true;
}

/* How much nearer the registers are than in a frame with a siginfo. */
static uint64_t find_shift(struct walk *w)
{
	uint8_t code[8];
	int which = -1;

	for (size_t len = sizeof(code); w->arch->sigreturn_shift && which < 0 && len >= 4; len -= 2)
		if (walk_read_code(w, w->regs.pc, code, len))
			which = arch_find_sigreturn(w->arch, code, len);
	return which < 0 ? 0 : w->arch->sigreturn_shift[which];
}

/* The kernel has put the interrupted registers on the stack; the stack itself may be another one (sigaltstack). */
static bool step_by_signal_frame(struct walk *w, struct caller *out)
{
	const struct arch *arch = w->arch;
	uint64_t frame = w->regs.r[arch->dwarf_sp] - find_shift(w);
	uint64_t value;

	*out = (struct caller){.exact = true};
	if (!walk_read_word(w, frame + (uint64_t)arch->sigframe_pc_offset, &out->regs.pc))
		return walk_end_unreadable(w, frame + (uint64_t)arch->sigframe_pc_offset);
	for (unsigned reg = 0; reg < arch->ndwarf_regs; reg++)
		if (arch->sigframe_offset[reg] >= 0 &&
		    walk_read_word(w, frame + (uint64_t)arch->sigframe_offset[reg], &value))
			regs_put(&out->regs, reg, value);
	if (!regs_has(&out->regs, arch->dwarf_sp))
		return walk_end_unreadable(w, frame + (uint64_t)arch->sigframe_offset[arch->dwarf_sp]);
	return true;
}

/* Code in no file: JIT-compiled, or a trampoline that the kernel put on the stack. How many bytes of it were read. */
static size_t read_loose_code(struct walk *w, uint8_t code[MADE_CODE])
{
	for (size_t len = MADE_CODE; len >= 4; len--)
		if (walk_read_code(w, w->regs.pc, code, len))
			return len;
	w->out->data[w->out->len - 1].flags |= FRAME_UNREAD;
	return 0;
}

/*
 * The current frame is a signal frame: it was not called, and its caller was interrupted. It may lead to another stack,
 * in any direction, so only a limit on their number ends a walk through a frame that leads to itself.
 */
static bool mark_signal_frame(struct walk *w)
{
	struct raw_frame *frame = &w->out->data[w->out->len - 1];

	frame->flags = (frame->flags | FRAME_SIGNAL) & ~(uint32_t)FRAME_RETURN_ADDRESS;
	if (w->nsignals++ < MAX_SIGNAL_FRAMES)
		return true;
	return walk_end(w, STACK_NO_PROGRESS, "more than %d signal frames", MAX_SIGNAL_FRAMES);
}

/* True when the frame pointer leads to the same return address and the same caller. */
static bool agrees_with_frame_pointer(const struct walk *w, const struct cfi_row *row, const struct caller *caller)
{
	const struct arch *arch = w->arch;
	const struct cfi_rule *rule = &row->regs[row->ra_reg];
	uint64_t cfa = caller->regs.r[arch->dwarf_sp];

	return rule->kind == CFI_AT_CFA_OFFSET && regs_has(&w->regs, arch->dwarf_fp) &&
	       cfa + (uint64_t)rule->offset == w->regs.r[arch->dwarf_fp] + arch->word;
}

/* The result of reading the code is trusted only if it leads to just behind a call. */
static bool step_by_reading(struct walk *w, const struct cfi_row *row, struct caller *out)
{
	uint64_t target;

	w->out->end = STACK_COMPLETE;
	return step_by_row(w, row, 0, out) && walk_is_return_address(w, out->regs.pc, &target);
}

/* Through code in no file. Its frame pointer may be anything, but what it does until it returns leaves no doubt. */
static bool step_through_loose_code(struct walk *w, struct caller *out)
{
	uint8_t code[MADE_CODE];
	size_t len = read_loose_code(w, code);
	struct cfi_row row;

	if (len && arch_is_sigreturn(w->arch, code, len))
		return mark_signal_frame(w) && step_by_signal_frame(w, out);
	if (len && insn_read_straight(w->arch, code, len, w->regs.pc, &row)) {
		if (step_by_reading(w, &row, out)) {
			out->flags = FRAME_BY_CODE;
			return true;
		}
		if (w->out->end == STACK_COPY_LIMIT)
			return false;
	}
	return step_by_guess(w, out);
}

/* The frame may be the outermost on this stack, and was made on another. */
static bool step_to_goroutine(struct walk *w, const struct code_info *info, struct caller *out)
{
	struct regs regs;

	if (!go_stack_find(w, info->go, &info->row, &regs))
		return false;
	if (info->go == GO_ROW_MORESTACK) {
		*out = (struct caller){.regs = regs, .exact = true};
		return true;
	}
	w->regs = regs;
	return step_by_row(w, &info->row, 0, out);
}

/*
 * Go that C has called: what called that is on the thread's stack, and saved there what C needs. The frame pointer is not
 * there any more on aarch64, where it is below sp. On the goroutine's stack there is an address that nothing was called from.
 */
static bool step_to_c(struct walk *w, const struct code_info *info, struct caller *out)
{
	struct regs regs;
	uint64_t target;

	if (!go_stack_find(w, info->go, &info->row, &regs))
		return false;
	w->regs = regs;
	if (!step_by_row(w, &info->row, 0, out))
		return false;
	out->regs.valid &= ~(UINT64_C(1) << w->arch->dwarf_fp);
	if (walk_is_return_address(w, out->regs.pc, &target))
		return true;
	return walk_end(w, STACK_NO_UNWIND_INFO, "the Go runtime has switched stacks here");
}

/* A search of the stack would not help: goroutines' stacks lie side by side. */
static bool step_in_go(struct walk *w, const struct code_info *info, struct caller *out)
{
	uint64_t target;

	switch (info->go) {
	case GO_ROW_PLAIN:
		return step_by_row(w, &info->row, 0, out);
	case GO_ROW_CALLBACK:
		return step_to_c(w, info, out);
	case GO_ROW_UNSURE:
		if (!step_by_row(w, &info->row, 0, out))
			return false;
		if (walk_is_return_address(w, out->regs.pc, &target))
			return true;
		return walk_end(w, STACK_NO_UNWIND_INFO, "the Go runtime is switching stacks here");
	default:
		return step_to_goroutine(w, info, out);
	}
}

static const struct stepper *find_stepper(const struct walk *w)
{
	for (size_t i = 0; i < w->nsteppers; i++)
		if (w->steppers[i].ops->owns(w->steppers[i].state, w->regs.pc))
			return &w->steppers[i];
	return NULL;
}

/* The code of a runtime: in no file, or in one that tells nothing of it. */
static enum step_result step_in_runtime(struct walk *w, struct caller *out)
{
	const struct stepper *stepper = find_stepper(w);
	enum step_result result;

	if (!stepper)
		return STEP_UNKNOWN;
	*out = (struct caller){0};
	result = stepper->ops->step(stepper->state, w, out);
	if (result == STEP_FOUND && !makes_progress(w, out)) {
		walk_end(w, STACK_NO_PROGRESS, "the caller's frame would not be closer to the stack's base");
		return STEP_END;
	}
	w->is_unsure |= result == STEP_UNKNOWN; /* what is found now is a guess, and so is all that depends on it */
	return result;
}

bool step_frame(struct walk *w, struct caller *out)
{
	enum step_result result = step_in_runtime(w, out);
	const struct code_info *info;
	struct module *module;
	uint64_t vaddr;

	if (result != STEP_UNKNOWN)
		return result == STEP_FOUND;
	module = modules_find(w->modules, w->regs.pc, &vaddr);
	info = module ? code_info_find(module, w->arch, w->budget, vaddr, w->exact) : NULL;
	if (!info)
		return step_through_loose_code(w, out);
	if (info->kind == CODE_SIGRETURN)
		return mark_signal_frame(w) && step_by_signal_frame(w, out);
	if (info->kind == CODE_START) {
		w->out->data[w->out->len - 1].flags &= ~(uint32_t)FRAME_RETURN_ADDRESS;
		return walk_end(w, STACK_COMPLETE, "%s", "");
	}
	if (info->kind == CODE_CFI) {
		if (info->row.signal_frame && !mark_signal_frame(w))
			return false;
		return step_by_row(w, &info->row, w->regs.pc - vaddr, out);
	}
	if (info->kind == CODE_EHABI) {
		w->is_by_ehabi |= w->exact && !walk_follows_syscall(w);
		return step_by_row(w, &info->row, 0, out);
	}
	if (info->kind == CODE_GO)
		return step_in_go(w, info, out);
	if (info->kind == CODE_READ) {
		if (step_by_reading(w, &info->row, out)) {
			out->flags = !module->jit && agrees_with_frame_pointer(w, &info->row, out) ? FRAME_BY_FRAME_POINTER
												    : FRAME_BY_CODE;
			return true;
		}
		if (w->out->end == STACK_COPY_LIMIT)
			return false;
	}
	return step_by_guess(w, out);
}
