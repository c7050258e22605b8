/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "unwind/insn.h"
#include "unwind/walk.h"

enum {
	SCAN_WORDS = 256,     /* how far up the stack a return address is looked for */
	STUB_WORDS = 3,       /* the same in a PLT stub: the lazy ones push two words */
	MAX_FUNCTION = 16384, /* a call to a place farther before the pc is not believed to call its function */
	ENTRY_SIZE = 128,     /* of the startup code at an ELF entry point */
	WORD_COST = 4,        /* budget for looking at a word */
	CODE_COST = 16,       /* and for checking whether a call precedes the code that it points at */
	TRAP = 0xcc,          /* a byte of code that is not to be executed, */
	TRAPS_ALIGN = 32,     /* and how what follows is aligned */
};

static uint64_t sp_of(const struct walk *w)
{
	return w->regs.r[w->arch->dwarf_sp];
}

/* The startup code of a program or of the dynamic linker, which nothing has called. */
static bool is_entry_code(struct walk *w, uint64_t pc)
{
	uint64_t vaddr;
	struct module *module = modules_find(w->modules, pc, &vaddr);
	uint64_t entry = module && module->image ? image_entry(module->image) : 0;

	return entry && vaddr >= entry && vaddr - entry < ENTRY_SIZE;
}

/* The code that calls a new thread's function, and ends the thread when that returns: musl's clone(). */
static bool is_exit_code(struct walk *w, uint64_t pc)
{
	uint8_t code[INSN_EXIT_BYTES];

	return walk_read_code(w, pc, code, sizeof(code)) && insn_is_exit(w->arch, code, sizeof(code));
}

/* Callee-saved registers are kept: code without CFI is mostly small and leaves them alone. */
static void set_caller(const struct walk *w, struct caller *out, uint64_t pc, uint64_t sp, uint32_t flags)
{
	*out = (struct caller){.flags = flags, .regs = w->regs};
	out->regs.valid &= w->arch->callee_saved;
	out->regs.pc = pc;
	regs_put(&out->regs, w->arch->dwarf_sp, sp);
}

/* aarch64: a leaf's return address is still in the register that the call left it in. */
static bool step_by_link_register(struct walk *w, struct caller *out)
{
	uint64_t ra, target;

	if (!w->arch->ra_in_register || !w->exact || !regs_has(&w->regs, w->arch->dwarf_ra))
		return false;
	ra = arch_strip_code_pointer(w->arch, w->regs.r[w->arch->dwarf_ra]);
	if (ra == w->regs.pc || !walk_is_return_address(w, ra, &target))
		return false;
	set_caller(w, out, ra, sp_of(w), FRAME_BY_SCAN);
	return true;
}

static bool is_in_file(struct walk *w, uint64_t pc)
{
	uint64_t vaddr;
	const struct module *module = modules_find(w->modules, pc, &vaddr);

	return module && !module->jit;
}

/* As V8 enters its interpreter, in code of its file, when it has left optimised code. */
static bool follows_jump(struct walk *w, uint64_t address)
{
	uint8_t before[INSN_JUMP_BYTES];

	return walk_read_code(w, address - sizeof(before), before, sizeof(before)) &&
	       insn_follows_jump(w->arch, before, address);
}

/*
 * JIT-compiled code may be unreadable, and interpreters push return addresses that do not follow a call: there, being
 * executable has to be enough.
 */
static bool may_be_return_address(struct walk *w, uint64_t address)
{
	uint64_t target;
	uint8_t byte;

	return walk_is_code(w, address - 1) && (!is_in_file(w, address - 1) || !walk_read_code(w, address - 1, &byte, 1) ||
						walk_is_return_address(w, address, &target) ||
						follows_jump(w, address));
}

/*
 * Frames that V8 made in the place of one of optimised code, and has not returned to yet, return to the start of code of its
 * file, before which it puts traps.
 */
static bool follows_traps(struct walk *w, uint64_t address)
{
	uint8_t code[2];

	return address % TRAPS_ALIGN == 0 && walk_is_code(w, address) && walk_read_code(w, address - 1, code, sizeof(code)) &&
	       code[0] == TRAP && code[1] != TRAP;
}

/* Where a frame record may be; 0: fp holds something else. */
static uint64_t frame_record(const struct walk *w)
{
	const struct map_entry *stack = maps_find(w->maps, sp_of(w));
	uint64_t fp = w->regs.r[w->arch->dwarf_fp];

	return stack && fp >= sp_of(w) && fp < stack->end && fp % w->arch->word == 0 ? fp : 0;
}

/* Both architectures keep the caller's frame pointer where fp points, and the return address above it. */
static bool step_by_frame_pointer(struct walk *w, struct caller *out)
{
	uint64_t fp = frame_record(w);
	uint64_t next, ra;

	if (!fp || !walk_read_word(w, fp, &next) || !walk_read_word(w, fp + w->arch->word, &ra))
		return false;
	ra = arch_strip_code_pointer(w->arch, ra);
	if (!may_be_return_address(w, ra) && !follows_traps(w, ra))
		return false;
	set_caller(w, out, ra, fp + 2 * w->arch->word, FRAME_BY_FRAME_POINTER);
	regs_put(&out->regs, w->arch->dwarf_fp, next);
	out->sp_is_bound = !w->arch->fp_gives_sp;
	return true;
}

struct candidate {
	uint64_t ra;
	uint64_t slot;   /* where it lies; 0: none */
	uint64_t target; /* target of the call before it, if that is the start of a function near the pc; else 0 */
};

/*
 * The best return address in the next `words` words of the stack. The function of the pc starts at or before it, and no
 * other starts in between, so of all calls to places before the pc the nearest is to this very function, and the one
 * lowest on the stack is the latest. If there is none, the first return address of any call.
 */
static struct candidate scan(struct walk *w, unsigned words)
{
	const struct map_entry *stack = maps_find(w->maps, sp_of(w));
	uint64_t end = stack && stack->end - sp_of(w) < words * w->arch->word ? stack->end : sp_of(w) + words * w->arch->word;
	struct candidate best = {0};
	uint64_t word, target;

	for (uint64_t slot = sp_of(w); slot + w->arch->word <= end && walk_read_word(w, slot, &word); slot += w->arch->word) {
		if (!budget_take(w->budget, WORD_COST))
			break;
		word = arch_strip_code_pointer(w->arch, word);
		if (!walk_is_code(w, word) || !budget_take(w->budget, CODE_COST) ||
		    !walk_is_return_address(w, word, &target))
			continue;
		if (target && !walk_is_code(w, target))
			continue;
		if (target > w->regs.pc || w->regs.pc - target > MAX_FUNCTION)
			target = 0;
		if (!best.slot || target > best.target)
			best = (struct candidate){.ra = word, .slot = slot, .target = target};
	}
	return best;
}

static bool step_by_scan(struct walk *w, unsigned words, struct caller *out)
{
	struct candidate best = scan(w, words);

	if (!best.slot)
		return false;
	set_caller(w, out, best.ra, best.slot + w->arch->word, FRAME_BY_SCAN);
	/* That call may have been of any function, and be long over; the one at the stack's base never is. */
	w->is_unsure |= words == SCAN_WORDS && !best.target && !is_entry_code(w, best.ra) && !is_exit_code(w, best.ra);
	return true;
}

/* A stub of the procedure linkage table jumps on with its caller's frame untouched. */
static bool is_plt_stub(struct walk *w)
{
	uint64_t vaddr;
	struct module *module = w->exact ? modules_find(w->modules, w->regs.pc, &vaddr) : NULL;
	const char *section = module && module->image ? image_section_name_at(module->image, vaddr) : NULL;

	return section && strncmp(section, ".plt", 4) == 0;
}

/* A call or jump to where there is no code: the return address is still in its place. */
static bool step_from_nowhere(struct walk *w, struct caller *out)
{
	if (w->exact && (step_by_link_register(w, out) || (!w->arch->ra_in_register && step_by_scan(w, 1, out))))
		return true;
	return walk_end(w, STACK_NO_UNWIND_INFO, "0x%" PRIx64 " is not in executable memory", w->regs.pc);
}

/* The part of the stack that was not copied might have told more. */
static bool is_cut_short(const struct walk *w)
{
	return frame_record(w) && walk_is_beyond_copy(w, frame_record(w) + w->arch->word);
}

/*
 * In a file's code a leaf is more likely than a frame record that was just set up; JIT-compiled code keeps frame
 * records, and leaves the return address of its own last call in the link register.
 */
static bool step_by_registers(struct walk *w, struct caller *out)
{
	return (is_in_file(w, w->regs.pc) && step_by_link_register(w, out)) || step_by_frame_pointer(w, out) ||
	       step_by_link_register(w, out);
}

/*
 * True when no more of the stack is left than a search would have covered; the main thread's also holds the
 * environment.
 */
static bool is_near_base(const struct walk *w)
{
	const struct map_entry *stack = maps_find(w->maps, sp_of(w));

	return stack && (stack->end - sp_of(w) <= SCAN_WORDS * w->arch->word || strcmp(stack->path, "[stack]") == 0);
}

static bool end_without_info(struct walk *w)
{
	uint64_t farthest = sp_of(w) + (SCAN_WORDS - 1) * w->arch->word;
	uint64_t vaddr;
	const struct module *module = modules_find(w->modules, w->regs.pc, &vaddr);

	if (walk_is_beyond_copy(w, farthest))
		return walk_end_unreadable(w, farthest);
	if (module && module->info.problem)
		return walk_end(w, STACK_NO_UNWIND_INFO, "no unwind information: %s: %s", module->info.path,
				module->info.problem);
	return walk_end(w, STACK_NO_UNWIND_INFO,
			"no unwind information for 0x%" PRIx64 ", and no frame pointer to follow", w->regs.pc);
}

bool step_by_guess(struct walk *w, struct caller *out)
{
	if (!walk_is_code(w, w->regs.pc - !w->exact))
		return step_from_nowhere(w, out);
	if (is_entry_code(w, w->regs.pc) || (!w->exact && is_exit_code(w, w->regs.pc)))
		return walk_end(w, STACK_COMPLETE, "%s", "");
	if (!regs_has(&w->regs, w->arch->dwarf_fp))
		return walk_end_missing(w, w->arch->dwarf_fp);
	if (!w->arch->ra_in_register && is_plt_stub(w) && step_by_scan(w, STUB_WORDS, out))
		return true;
	if (step_by_registers(w, out))
		return true;
	if (is_cut_short(w))
		return walk_end_unreadable(w, frame_record(w) + w->arch->word);
	/*
	 * Not for code made at run time: its frames leave words on the stack that look like return addresses but are
	 * not.
	 */
	if (is_in_file(w, w->regs.pc) && step_by_scan(w, SCAN_WORDS, out))
		return true;
	/*
	 * The ABI's mark of the outermost frame, set by startup code and by clone(); trusted only near the stack's
	 * base.
	 */
	if (w->regs.r[w->arch->dwarf_fp] == 0 && !w->exact && is_near_base(w))
		return walk_end(w, STACK_COMPLETE, "%s", "");
	return end_without_info(w);
}
