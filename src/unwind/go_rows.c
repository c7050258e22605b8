/* SPDX-License-Identifier: MIT */
#include "unwind/go_rows.h"

#include <string.h>

#include "elf/go_funcs.h"
#include "unwind/insn.h"

enum {
	WORD = 8,
	MAX_SWITCH = 4096, /* bytes of a function that changes stacks: longer ones are left out */
	LONGEST_NAME = 40, /* of the functions that are known by name, and more */
};

/* Limits on bytes of tables, which functions may share: for one address, and for a whole file. */
enum { FIND_BUDGET = 1 << 20, ALL_BUDGET = 64 << 20, READ_BUDGET = 1 << 20 };

/* What a function does with the stack, besides having a frame. */
enum role {
	ROLE_PLAIN,
	ROLE_TOP,      /* nothing has called it */
	ROLE_CALLBACK, /* as the rows of that name; the following ones leave their frame for another stack */
	ROLE_LEAVES,   /* the thread leaves the goroutine, and goes on with a function of the runtime */
	ROLE_SYSTEM,   /* as the rows of these names */
	ROLE_C,
	ROLE_MORESTACK,
	ROLE_WRITES_SP, /* calls or computes something on another stack, or in an aligned frame */
	ROLE_FOR_C,     /* is called by C, and keeps C's registers in a frame that is not Go's: its code tells */
};

static bool is_named(const char *name, const char *what)
{
	size_t len = strlen(what);

	return strncmp(name, what, len) == 0 && (!name[len] || strcmp(name + len, ".abi0") == 0);
}

/* Whether it has the flag, too: a wrapper for callers that pass arguments otherwise has the same name, but not that. */
static bool is_flagged(const struct go_tables *t, const struct go_func *f, enum role role)
{
	unsigned needed = role == ROLE_PLAIN ? 0 : role == ROLE_TOP ? GO_FUNC_TOP : GO_FUNC_WRITES_SP;

	return t->version < GO_1_18 || (f->flags & needed) == needed;
}

/* The names are what all releases have in common: flags came with 1.17, and the numbers of functions change. */
static enum role role_of(const struct go_tables *t, const struct go_func *f)
{
	static const struct {
		const char *name;
		enum role role;
	} known[] = {
		{"goexit", ROLE_TOP},
		{"mstart", ROLE_TOP},
		{"rt0_go", ROLE_TOP},
		{"mcall", ROLE_LEAVES},
		{"systemstack", ROLE_SYSTEM},
		{"asmcgocall", ROLE_C},
		{"morestack", ROLE_MORESTACK},
		{"sigtramp", ROLE_PLAIN},       /* outermost to Go; the signal frame follows */
		{"cgocallback", ROLE_CALLBACK}, /* has made itself the same frame on the goroutine's stack */
		{"cgocallback_gofunc", ROLE_CALLBACK},
	};
	static const char package[] = "runtime.";
	char name[LONGEST_NAME + 1] = "";
	struct cursor c = go_tables_at(t, t->names, f->name);

	memcpy(name, c.p, cursor_left(&c) < LONGEST_NAME ? cursor_left(&c) : LONGEST_NAME);
	if (strncmp(name, package, sizeof(package) - 1) == 0)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (is_named(name + sizeof(package) - 1, known[i].name) && is_flagged(t, f, known[i].role))
				return known[i].role;
	if (is_named(name, "crosscall2"))
		return ROLE_FOR_C;
	if (f->flags & GO_FUNC_TOP)
		return ROLE_TOP;
	return f->flags & GO_FUNC_WRITES_SP ? ROLE_WRITES_SP : ROLE_PLAIN;
}

static void set_rule(struct cfi_row *row, unsigned reg, enum cfi_rule_kind kind, int64_t offset)
{
	row->regs[reg] = (struct cfi_rule){.kind = kind, .offset = offset};
}

/* Go's functions preserve nothing but the frame pointer and the register that holds the goroutine. */
static void forget_registers(const struct arch *arch, struct cfi_row *row)
{
	for (unsigned reg = 0; reg < arch->ndwarf_regs; reg++)
		if ((arch->callee_saved >> reg & 1) && reg != arch->dwarf_fp && reg != arch->dwarf_sp &&
		    reg != arch->dwarf_ra && reg != arch->dwarf_go)
			set_rule(row, reg, CFI_UNDEFINED, 0);
}

/*
 * x86_64: the return address is at the top of the frame, the caller's frame pointer below it. aarch64: the return
 * address is at the bottom, where sp points, and the caller's frame pointer below that, outside of the frame; a
 * function without a frame has its return address in the link register. fp points at the caller's in both.
 */
static void describe_frame(const struct arch *arch, int32_t size, struct cfi_row *row)
{
	int64_t cfa = arch->ra_in_register ? size : (int64_t)size + WORD;
	int64_t ra = arch->ra_in_register ? -(int64_t)size : -WORD;

	row->ra_reg = arch->dwarf_ra;
	row->cfa = (struct cfi_rule){.kind = CFI_REGISTER_OFFSET, .reg = arch->dwarf_sp, .offset = cfa};
	forget_registers(arch, row);
	if (size || !arch->ra_in_register)
		set_rule(row, arch->dwarf_ra, CFI_AT_CFA_OFFSET, ra);
	if (size)
		set_rule(row, arch->dwarf_fp, CFI_AT_CFA_OFFSET, ra - WORD);
}

static void end_here(const struct arch *arch, struct cfi_row *row)
{
	row->ra_reg = arch->dwarf_ra;
	row->cfa = (struct cfi_rule){.kind = CFI_REGISTER_OFFSET, .reg = arch->dwarf_sp};
	set_rule(row, arch->dwarf_ra, CFI_UNDEFINED, 0);
}

/* Of a function that has not called anything yet one cannot tell whether it has changed stacks. */
static enum go_row_kind kind_of(enum role role, int32_t size, bool exact)
{
	static const enum go_row_kind after_call[] = {
		[ROLE_PLAIN] = GO_ROW_PLAIN,         [ROLE_TOP] = GO_ROW_PLAIN,     [ROLE_LEAVES] = GO_ROW_PLAIN,
		[ROLE_CALLBACK] = GO_ROW_CALLBACK,   [ROLE_SYSTEM] = GO_ROW_SYSTEM, [ROLE_C] = GO_ROW_C,
		[ROLE_MORESTACK] = GO_ROW_MORESTACK,
	};

	if (!exact && role != ROLE_WRITES_SP)
		return after_call[role];
	if (role <= ROLE_CALLBACK)
		return GO_ROW_PLAIN;
	return size ? GO_ROW_FRAME : GO_ROW_UNSURE;
}

/* `at` has the row; unless `exact`, the call that ends behind it has left the frame so. */
static bool read_row(const struct go_tables *t, const struct arch *arch, struct budget *budget, uint64_t at, bool exact,
		     struct go_row *out)
{
	out->kind = GO_ROW_PLAIN;
	if (!insn_read_row(t->image, arch, budget, exact ? at : at + 1, &out->row))
		return false;
	out->row.start = at;
	out->row.end = at + 1;
	return true;
}

/* False when the size of the frame is none. */
static bool make_row(const struct arch *arch, enum role role, int32_t size, bool exact, struct go_row *out)
{
	out->kind = kind_of(role, size, exact);
	if (role == ROLE_TOP || (role == ROLE_LEAVES && !exact)) {
		end_here(arch, &out->row);
		return true;
	}
	if (size < 0 || size % WORD)
		return false;
	describe_frame(arch, size, &out->row);
	return true;
}

bool go_rows_find(const struct go_tables *t, const struct arch *arch, struct budget *budget, uint64_t vaddr, bool exact,
		  struct go_row *out)
{
	uint64_t bytes = FIND_BUDGET;
	struct go_values v;
	struct go_func f;
	enum role role;
	bool found = false;

	*out = (struct go_row){0};
	if (!go_func_find(t, vaddr, &bytes, &f))
		return false;
	v = go_values(t, &f, f.pcsp);
	while (!found && go_values_next(t, &v))
		found = vaddr < v.end;
	if (!budget_take(budget, FIND_BUDGET - bytes) || !found)
		return false;
	role = role_of(t, &f);
	if (role == ROLE_FOR_C)
		return read_row(t, arch, budget, vaddr, exact, out);
	out->row.start = v.start;
	out->row.end = v.end;
	return make_row(arch, role, v.value, exact, out);
}

static int put_bytes(const struct go_tables *t, const struct arch *arch, enum role role, const struct go_values *v,
		     struct span code, go_row_fn fn, void *arg)
{
	struct budget budget = {.left = READ_BUDGET};
	int ret = 0;

	for (uint64_t at = v->start; ret == 0 && at < v->end; at++) {
		struct go_row row = {.row = {.start = at, .end = at + 1}};
		bool exact = !insn_ends_call(arch, code, at + 1);

		if (role == ROLE_FOR_C ? read_row(t, arch, &budget, at, exact, &row) : make_row(arch, role, v->value, exact, &row))
			ret = fn(&row, arg);
	}
	return ret;
}

static int put_function(const struct go_tables *t, const struct arch *arch, const struct go_func *f, go_row_fn fn,
			void *arg)
{
	enum role role = role_of(t, f);
	bool switches = role != ROLE_PLAIN && role != ROLE_TOP && role != ROLE_WRITES_SP;
	struct span code = switches ? image_bytes_at(t->image, f->start) : (struct span){0};
	struct go_values v = go_values(t, f, f->pcsp);
	int ret = 0;

	if (switches && (f->end - f->start > MAX_SWITCH || f->end - f->start > *f->budget))
		return 0;
	*f->budget -= switches ? f->end - f->start : 0;
	while (ret == 0 && go_values_next(t, &v) && v.start < f->end) {
		struct go_row row = {.row = {.start = v.start}};

		if (v.end > f->end || v.end <= v.start)
			v.end = f->end;
		row.row.end = v.end;
		if (switches)
			ret = put_bytes(t, arch, role, &v, code, fn, arg);
		else if (make_row(arch, role, v.value, true, &row))
			ret = fn(&row, arg);
	}
	return ret;
}

int go_rows_for_each(const struct go_tables *t, const struct arch *arch, go_row_fn fn, void *arg)
{
	uint64_t budget = ALL_BUDGET, last = 0;
	struct go_func f;
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < t->nfunc; i++)
		if (go_func_nth(t, i, &budget, &f) && f.start >= last) {
			last = f.end;
			ret = put_function(t, arch, &f, fn, arg);
		}
	return ret;
}
