/* SPDX-License-Identifier: MIT */
#include "unwind/go_stack.h"

#include "bpf/go_layout.h"

enum { MAX_SWITCHES = 64 }; /* in one walk: a program made to keep us busy could go on for ever */

/* What depends on the release. */
struct layout {
	uint16_t curg; /* in struct m */
	uint16_t lr;   /* in struct g */
	uint16_t fp;
};

static const struct layout layouts[] = {
	{.curg = GO_M_CURG_OLD, .lr = GO_G_LR_OLD, .fp = GO_G_FP_OLD},
	{.curg = GO_M_CURG, .lr = GO_G_LR, .fp = GO_G_FP},
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* Where asmcgocall keeps the goroutine and its depth. */
struct kept {
	enum arch_id arch;
	uint16_t goroutine;
	uint16_t depth;
};

static const struct kept kept[] = {
	{ARCH_X86_64, GO_X86_C_GOROUTINE_OLD, GO_X86_C_DEPTH_OLD},
	{ARCH_X86_64, GO_X86_C_GOROUTINE, GO_X86_C_DEPTH},
	{ARCH_AARCH64, GO_ARM_C_GOROUTINE, GO_ARM_C_DEPTH},
};

enum { KEPT = sizeof(kept) / sizeof(kept[0]) };

static bool end_switched(struct walk *w)
{
	return walk_end(w, STACK_NO_UNWIND_INFO, "the Go runtime has switched stacks here");
}

static bool read_at(struct walk *w, uint64_t base, unsigned offset, uint64_t *out)
{
	return base && base % sizeof(*out) == 0 && walk_read_word(w, base + offset, out);
}

/* A function as a value: a pointer to a pointer to its code. */
static bool is_function(struct walk *w, uint64_t value)
{
	uint64_t code;

	return read_at(w, value, 0, &code) && walk_is_code(w, code);
}

/*
 * `g0` is the goroutine of the thread's own stack, on which the walk is. *goroutine: the one that the thread works for;
 * 0 when it has left that for good.
 */
static bool find_goroutine(struct walk *w, uint64_t g0, uint64_t *goroutine, const struct layout **layout)
{
	uint64_t m, back, words[LAYOUTS];

	if (!read_at(w, g0, GO_G_M, &m) || !read_at(w, m, GO_M_G0, &back) || back != g0)
		return false;
	for (size_t i = 0; i < LAYOUTS; i++) {
		if (!read_at(w, m, layouts[i].curg, &words[i]))
			return false;
		*goroutine = words[i];
		*layout = &layouts[i];
		if (!*goroutine || *goroutine == g0)
			continue;
		if (!read_at(w, *goroutine, GO_G_M, &back)) /* what was not copied is asked for in this order */
			return false;
		if (back == m)
			return true;
	}
	*goroutine = 0; /* in both layouts the first is 0 when there is none; in the old one the other is a function */
	return !words[0] && (!words[1] || is_function(w, words[1]));
}

/* True when a thread works for it. */
static bool is_goroutine(struct walk *w, uint64_t goroutine)
{
	uint64_t m, curg;

	if (!read_at(w, goroutine, GO_G_M, &m))
		return false;
	for (size_t i = 0; i < LAYOUTS; i++)
		if (read_at(w, m, layouts[i].curg, &curg) && curg == goroutine)
			return true;
	return false;
}

static bool is_on_stack(struct walk *w, uint64_t goroutine, uint64_t sp)
{
	uint64_t low, high;

	return read_at(w, goroutine, GO_G_STACK_LOW, &low) && read_at(w, goroutine, GO_G_STACK_HIGH, &high) &&
	       sp >= low && sp < high && sp % sizeof(sp) == 0;
}

/* What systemstack and morestack have saved in the goroutine. */
static bool find_saved(struct walk *w, enum go_row_kind kind, struct regs *out)
{
	const struct arch *arch = w->arch;
	const struct layout *layout;
	uint64_t goroutine, sp, value;

	if (!find_goroutine(w, w->regs.r[arch->dwarf_go], &goroutine, &layout))
		return end_switched(w);
	if (!goroutine)
		return walk_end(w, STACK_COMPLETE, "%s", "");
	if (!read_at(w, goroutine, GO_G_SP, &sp) || !is_on_stack(w, goroutine, sp))
		return end_switched(w);
	regs_put(out, arch->dwarf_sp, sp);
	regs_put(out, arch->dwarf_go, goroutine);
	if (read_at(w, goroutine, layout->fp, &value))
		regs_put(out, arch->dwarf_fp, value);
	if (kind != GO_ROW_MORESTACK)
		return true;
	if (arch->ra_in_register && read_at(w, goroutine, layout->lr, &value))
		regs_put(out, arch->dwarf_ra, value);
	return (read_at(w, goroutine, GO_G_PC, &out->pc) && walk_is_code(w, out->pc)) || end_switched(w);
}

/* What may be the goroutine and its depth: before anything is asked for that was not copied. */
static bool read_kept(struct walk *w, const struct kept *at, uint64_t *goroutine, uint64_t *depth)
{
	uint64_t base = w->regs.r[w->arch->dwarf_sp];
	const struct map_entry *map;

	if (!read_at(w, base, at->goroutine, goroutine) || !read_at(w, base, at->depth, depth) ||
	    *depth % sizeof(*depth))
		return false;
	if (!*goroutine)
		return *depth > base && *depth - base <= GO_C_NEAR;
	map = maps_find(w->maps, *goroutine);
	return map && (map->perms & MAP_PERM_WRITE) && *depth <= GO_C_DEPTH_MAX;
}

/* On a stack of its own already, asmcgocall keeps no goroutine, and its sp as it was. */
static bool find_kept(struct walk *w, struct regs *out)
{
	uint64_t goroutine, depth, high;
	size_t i = 0;

	while (i < KEPT && (kept[i].arch != w->arch->id || !read_kept(w, &kept[i], &goroutine, &depth)))
		i++;
	if (i == KEPT)
		return end_switched(w);
	if (goroutine && (!is_goroutine(w, goroutine) || !read_at(w, goroutine, GO_G_STACK_HIGH, &high) ||
			  !is_on_stack(w, goroutine, high - depth)))
		return end_switched(w);
	regs_put(out, w->arch->dwarf_sp, goroutine ? high - depth : depth);
	if (goroutine)
		regs_put(out, w->arch->dwarf_go, goroutine);
	else if (regs_has(&w->regs, w->arch->dwarf_go))
		regs_put(out, w->arch->dwarf_go, w->regs.r[w->arch->dwarf_go]);
	return true;
}

/*
 * The thread's own goroutine has the sp that the stack was left with by the innermost call from C, and that is where the one
 * outside of it is kept. Before that is left the walk is on it already.
 */
static bool find_callback(struct walk *w, struct regs *out)
{
	const struct arch *arch = w->arch;
	uint64_t goroutine = w->regs.r[arch->dwarf_go], m, g0, back, sp;
	unsigned saved = arch->id == ARCH_X86_64 ? GO_X86_CALLBACK_SAVED : GO_ARM_CALLBACK_SAVED;

	if (!read_at(w, goroutine, GO_G_M, &m) || !read_at(w, m, GO_M_G0, &g0) || !read_at(w, g0, GO_G_M, &back) || back != m)
		return end_switched(w);
	if (goroutine == g0 || !is_on_stack(w, goroutine, w->regs.r[arch->dwarf_sp])) {
		*out = w->regs;
		return true;
	}
	sp = w->go_outer;
	if ((!sp && !read_at(w, g0, GO_G_SP, &sp)) || !read_at(w, sp, saved, &w->go_outer) || w->go_outer < sp)
		return end_switched(w);
	regs_put(out, arch->dwarf_sp, sp);
	regs_put(out, arch->dwarf_go, g0);
	return true;
}

/* fp points at where the caller's is saved. */
static void find_frame(struct walk *w, const struct cfi_row *row, struct regs *out)
{
	const struct arch *arch = w->arch;
	uint64_t fp = w->regs.r[arch->dwarf_fp], cfa = fp - (uint64_t)row->regs[arch->dwarf_fp].offset;

	regs_put(out, arch->dwarf_fp, fp);
	regs_put(out, arch->dwarf_sp, cfa - (uint64_t)row->cfa.offset);
	if (regs_has(&w->regs, arch->dwarf_go)) /* the goroutine is the same on both stacks */
		regs_put(out, arch->dwarf_go, w->regs.r[arch->dwarf_go]);
}

bool go_stack_find(struct walk *w, enum go_row_kind kind, const struct cfi_row *row, struct regs *out)
{
	unsigned needed = kind == GO_ROW_FRAME ? w->arch->dwarf_fp
			  : kind == GO_ROW_C   ? w->arch->dwarf_sp
					       : w->arch->dwarf_go;

	*out = (struct regs){.pc = w->regs.pc};
	if (!regs_has(&w->regs, needed))
		return walk_end_missing(w, needed);
	if (w->nswitches++ >= MAX_SWITCHES)
		return end_switched(w);
	w->stack = NULL;
	if (kind == GO_ROW_FRAME) {
		find_frame(w, row, out);
		return true;
	}
	if (kind == GO_ROW_CALLBACK)
		return find_callback(w, out);
	return kind == GO_ROW_C ? find_kept(w, out) : find_saved(w, kind, out);
}
