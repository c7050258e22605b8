/* SPDX-License-Identifier: MIT */
#include "unwind/walk.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "unwind/insn.h"

bool walk_end(struct walk *w, enum stack_end end, const char *fmt, ...)
{
	va_list ap;

	w->out->end = end;
	w->out->end_pc = w->regs.pc;
	va_start(ap, fmt);
	vsnprintf(w->out->error, sizeof(w->out->error), fmt, ap);
	va_end(ap);
	return false;
}

bool walk_is_beyond_copy(const struct walk *w, uint64_t address)
{
	const struct mem_copy *stack = w->stack;

	return stack && address >= stack->start && address - stack->start >= stack->len && address < stack->region_end;
}

bool walk_end_unreadable(struct walk *w, uint64_t address)
{
	if (walk_is_beyond_copy(w, address))
		return walk_end(w, STACK_COPY_LIMIT,
				"the stack goes on beyond the %" PRIu64 " bytes that were copied (--stack-size, --stop=hold)",
				w->stack->len);
	return walk_end(w, STACK_UNREADABLE, "cannot read the word at 0x%" PRIx64, address);
}

/* A stop would not tell it: callers do not find it again, and nothing says where it was saved. */
static bool is_lost_by_calls(const struct walk *w, uint64_t reg)
{
	return !w->exact && reg < w->arch->ndwarf_regs && !(w->arch->callee_saved >> reg & 1) && reg != w->arch->dwarf_sp;
}

bool walk_end_missing(struct walk *w, uint64_t reg)
{
	const char *name = reg < w->arch->ndwarf_regs ? w->arch->dwarf_reg_names[reg] : NULL;

	if (name && is_lost_by_calls(w, reg))
		return walk_end(w, STACK_NO_UNWIND_INFO, "the unwind information wants register %s, which calls do not keep", name);
	if (name)
		return walk_end(w, STACK_MISSING_REGISTER, "the step needs register %s, which is not known", name);
	return walk_end(w, STACK_MISSING_REGISTER, "the step needs DWARF register %" PRIu64 ", which is not known",
			reg);
}

bool walk_read_word(struct walk *w, uint64_t address, uint64_t *out)
{
	uint64_t word = 0; /* little-endian: a shorter one is its beginning */

	if (!mem_read_exact(w->mem, address, &word, w->arch->word))
		return false;
	*out = le64toh(word);
	return true;
}

bool walk_read_code(struct walk *w, uint64_t address, void *buf, size_t len)
{
	uint64_t vaddr;
	struct module *module = modules_find(w->modules, address, &vaddr);
	bool got;

	if (module && module->image) {
		struct span code = image_bytes_at(module->image, vaddr);

		if (code.data && code.len >= len) {
			memcpy(buf, code.data, len);
			return true;
		}
	}
	w->reads_code = true;
	got = mem_read_exact(w->mem, address, buf, len);
	w->reads_code = false;
	return got;
}

/* By the last bytes of the instruction. */
bool walk_follows_syscall(struct walk *w)
{
	enum { TAIL = 2 };
	const uint8_t *call = w->arch->sigreturn_code[0] + w->arch->sigreturn_len[0] - TAIL;
	uint8_t code[TAIL];

	return walk_read_code(w, w->regs.pc - TAIL, code, TAIL) && memcmp(code, call, TAIL) == 0;
}

bool walk_is_code(const struct walk *w, uint64_t address)
{
	const struct map_entry *map = maps_find(w->maps, address);

	return map && (map->perms & MAP_PERM_EXEC);
}

bool walk_is_return_address(struct walk *w, uint64_t address, uint64_t *target)
{
	uint8_t before[INSN_MAX_CALL];

	if (address < sizeof(before) || !walk_is_code(w, address - 1))
		return false;
	/* Near the start of a mapping there are fewer bytes than the longest call has. */
	for (size_t len = sizeof(before); len >= INSN_MIN_CALL; len--)
		if (walk_read_code(w, address - len, before, len))
			return insn_follows_call(w->arch, before, len, address, target);
	return false;
}
