/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/frame.h"

#include <string.h>

#include "runtime/hotspot/scopes.h"
#include "runtime/hotspot/stub.h"
#include "runtime/hotspot/top.h"
#include "unwind/insn.h"

enum {
	WORD = 8,
	MAX_SAVED = 1 << 14, /* bytes of registers: 32 of the longest vectors, and all others */
	/* slots of an interpreted frame, in words from its frame pointer */
	SENDER_SP = -1,
	METHOD = -3,
};

/* What the virtual machine's own conventions add to those of an architecture. */
struct conventions {
	enum arch_id arch;
	int8_t bcp;      /* slot of an interpreted frame: the bytecode that is executed */
	int8_t bcp_old;  /* the same in 8 */
	uint8_t bcp_reg; /* while it is executed */
	struct {
		uint8_t reg;
		int8_t slot; /* of the stub by which native code calls Java: what it saved for that */
	} saved[10];
};

static const struct conventions conventions[] = {
	{
		.arch = ARCH_X86_64,
		.bcp = -8,
		.bcp_old = -7,
		.bcp_reg = 13,
		.saved = {{3, -7}, {12, -8}, {13, -9}, {14, -10}, {15, -11}},
	},
	{
		.arch = ARCH_AARCH64,
		.bcp = -9,
		.bcp_old = -7,
		.bcp_reg = 22,
		.saved = {{19, -9}, {20, -10}, {21, -11}, {22, -12}, {23, -13}, {24, -14}, {25, -15}, {26, -16}, {27, -17},
			  {28, -18}},
	},
};

static const struct conventions *conventions_of(const struct arch *arch)
{
	for (size_t i = 0; i < sizeof(conventions) / sizeof(conventions[0]); i++)
		if (conventions[i].arch == arch->id)
			return &conventions[i];
	return NULL;
}

static int bytecode_slot(const struct layout *layout, const struct conventions *c)
{
	return layout->facts[HS_FEATURE] == 8 ? c->bcp_old : c->bcp;
}

int32_t java_bytecode_slot(const struct layout *layout, const struct arch *arch)
{
	const struct conventions *c = conventions_of(arch);

	return c ? WORD * bytecode_slot(layout, c) : 0;
}

uint64_t java_behind_call(const struct blob *blob, uint64_t pc)
{
	return blob->code_end - pc < JAVA_BEHIND_CALL ? blob->code_end - pc : JAVA_BEHIND_CALL;
}

static bool slot_at(struct walk *w, uint64_t fp, int slot, uint64_t *out)
{
	return walk_read_word(w, fp + (uint64_t)(int64_t)slot * WORD, out);
}

static uint64_t sp_of(const struct walk *w)
{
	return w->regs.r[w->arch->dwarf_sp];
}

/* Whether the frame pointer is known, and may be that of a frame here. */
static bool has_frame_pointer(const struct walk *w, uint64_t *fp)
{
	const struct map_entry *stack = maps_find(w->maps, sp_of(w));

	if (!regs_has(&w->regs, w->arch->dwarf_fp))
		return false;
	*fp = w->regs.r[w->arch->dwarf_fp];
	return stack && *fp % WORD == 0 && *fp >= sp_of(w) && *fp < stack->end;
}

/* Compiled code keeps no register but these two for its caller. */
static void set_caller(const struct walk *w, struct caller *out, uint64_t pc, uint64_t sp, uint64_t fp)
{
	out->regs.pc = arch_strip_code_pointer(w->arch, pc);
	regs_put(&out->regs, w->arch->dwarf_sp, sp);
	regs_put(&out->regs, w->arch->dwarf_fp, fp);
}

static enum step_result end_unreadable(struct walk *w, uint64_t address)
{
	walk_end_unreadable(w, address);
	return STEP_END;
}

/* The record of frame pointer and return address that ends below `end`. */
static enum step_result step_by_record(struct walk *w, uint64_t end, uint64_t sp, struct caller *out)
{
	uint64_t pc, fp;

	if (!walk_read_word(w, end - WORD, &pc))
		return end_unreadable(w, end - WORD);
	if (!walk_read_word(w, end - 2 * WORD, &fp))
		return end_unreadable(w, end - 2 * WORD);
	set_caller(w, out, pc, sp, fp);
	return STEP_FOUND;
}

/* No frame, or one without its record: the return address is where the call left it, and the frame pointer as it was. */
static enum step_result step_by_link(struct walk *w, uint64_t end, struct caller *out)
{
	const struct arch *arch = w->arch;
	uint64_t pc, sp = end;

	if (arch->ra_in_register) {
		if (!regs_has(&w->regs, arch->dwarf_ra)) {
			walk_end_missing(w, arch->dwarf_ra);
			return STEP_END;
		}
		pc = w->regs.r[arch->dwarf_ra];
	} else if (!walk_read_word(w, end, &pc)) {
		return end_unreadable(w, end);
	} else {
		sp += WORD;
	}
	out->regs.pc = arch_strip_code_pointer(arch, pc);
	regs_put(&out->regs, arch->dwarf_sp, sp);
	if (regs_has(&w->regs, arch->dwarf_fp))
		regs_put(&out->regs, arch->dwarf_fp, w->regs.r[arch->dwarf_fp]);
	return STEP_FOUND;
}

static uint64_t link_of(const struct walk *w)
{
	const struct arch *arch = w->arch;

	return arch->ra_in_register && regs_has(&w->regs, arch->dwarf_ra) ? arch_strip_code_pointer(arch, w->regs.r[arch->dwarf_ra]) : 0;
}

static enum top_state find_top(struct code_cache *cache, const struct walk *w, const struct blob *blob, uint64_t *below)
{
	const struct top_at at = {.pc = w->regs.pc, .link = link_of(w)};
	uint64_t start, len;
	uint8_t code[TOP_MAX_WINDOW];

	*below = 0;
	if (!w->exact)
		return TOP_WHOLE;
	if (!top_window(blob, at.pc, &start, &len) || !pages_read(cache->pages, start, code, len))
		return TOP_UNKNOWN;
	return top_find(w->arch, blob, &at, code, start, len, below);
}

static bool is_code_of(const struct blob *blob, uint64_t pc)
{
	return pc >= blob->code_begin && pc < blob->code_end;
}

/*
 * Whether the link register agrees with the return address of the frame: that is still in it, or a call has put another one there.
 * If it leads elsewhere, the frame is none.
 */
static bool agrees_with_link(const struct walk *w, const struct blob *blob, const struct caller *caller)
{
	uint64_t link = w->exact ? link_of(w) : 0;

	return !link || link == caller->regs.pc || is_code_of(blob, link);
}

static bool calls_native(const struct code_cache *cache, const struct walk *w)
{
	return !w->exact && w->out->len > 1 && !code_cache_owns(cache, w->out->data[w->out->len - 2].pc);
}

/*
 * Where compiled code calls native code other than by a method, it may have saved registers below its frame, and takes them off
 * again behind the call: how many bytes. What it takes off in the end, with the record, is the frame itself.
 */
static uint64_t saved_below(struct code_cache *cache, const struct walk *w, const struct blob *blob)
{
	const struct insn_slot *record;
	struct insn_state behind;
	uint8_t code[JAVA_BEHIND_CALL];
	uint64_t len = java_behind_call(blob, w->regs.pc), taken;

	if (blob->kind != BLOB_COMPILED || !calls_native(cache, w) || !pages_read(cache->pages, w->regs.pc, code, len))
		return 0;
	behind = insn_follow_straight(w->arch, code, len, w->regs.pc);
	record = &behind.saved[w->arch->dwarf_fp];
	if (behind.sp.from_fp || (record->known && record->from_fp))
		return 0;
	taken = record->known ? (uint64_t)record->offset + 2 * WORD - (uint64_t)blob->frame_size * WORD : (uint64_t)behind.high;
	return taken <= MAX_SAVED && taken % WORD == 0 ? taken : 0;
}

static enum step_result step_by_frame_pointer(struct walk *w, struct caller *out)
{
	uint64_t fp;

	if (!regs_has(&w->regs, w->arch->dwarf_fp)) {
		walk_end_missing(w, w->arch->dwarf_fp);
		return STEP_END;
	}
	if (!has_frame_pointer(w, &fp))
		return STEP_UNKNOWN;
	return step_by_record(w, fp + 2 * WORD, fp + 2 * WORD, out);
}

static enum step_result step_from_whole(struct walk *w, const struct blob *blob, uint64_t end, struct caller *out)
{
	enum step_result result = step_by_record(w, end, end, out);

	return result == STEP_FOUND && !agrees_with_link(w, blob, out) ? STEP_UNKNOWN : result;
}

/* A wrapper of a native method makes a second frame in some places, to call the virtual machine. */
static enum step_result step_from_wrapper(struct walk *w, const struct blob *blob, struct caller *out)
{
	enum step_result result = step_by_frame_pointer(w, out);

	return result == STEP_FOUND && is_code_of(blob, out->regs.pc) ? STEP_UNKNOWN : result;
}

/* Compiled methods, wrappers and most stubs: the size of their frames is known. */
static enum step_result step_by_size(struct code_cache *cache, struct walk *w, const struct blob *blob, struct caller *out)
{
	uint64_t end = sp_of(w) + saved_below(cache, w, blob) + (uint64_t)blob->frame_size * WORD, below;

	if (w->sp_is_bound)
		return STEP_UNKNOWN;
	switch (find_top(cache, w, blob, &below)) {
	case TOP_WHOLE:
		return step_from_whole(w, blob, end + below, out);
	case TOP_RECORD:
		end = sp_of(w) + 2 * WORD;
		return step_by_record(w, end, end, out);
	case TOP_NONE:
		return step_by_link(w, sp_of(w), out);
	case TOP_UNSAVED:
		return step_by_link(w, w->arch->ra_in_register ? end : end - WORD, out);
	case TOP_AT_FP:
		return step_from_wrapper(w, blob, out);
	case TOP_UNKNOWN:
		break;
	}
	return STEP_UNKNOWN;
}

/* Back to native code, which gets its registers back. */
static enum step_result step_from_entry(struct walk *w, const struct conventions *c, struct caller *out)
{
	enum step_result result = step_by_frame_pointer(w, out);
	uint64_t fp = w->regs.r[w->arch->dwarf_fp], value;

	for (size_t i = 0; result == STEP_FOUND && i < sizeof(c->saved) / sizeof(c->saved[0]) && c->saved[i].slot; i++)
		if (slot_at(w, fp, c->saved[i].slot, &value))
			regs_put(&out->regs, c->saved[i].reg, value);
	return result;
}

/* The frame of a thread that runs is the interpreter's only if the bytecode that it executes is of the frame's method. */
static bool executes(struct methods *methods, const struct walk *w, const struct conventions *c, struct java_place *place)
{
	uint64_t start, size, bcp = w->regs.r[c->bcp_reg];

	if (!regs_has(&w->regs, c->bcp_reg) || !methods_find_code(methods, place->code, &start, &size) || bcp - start >= size)
		return false;
	place->place = bcp;
	return true;
}

/*
 * The sp of its caller is kept in the frame, since it may have moved that for its own variables. An interpreted caller's
 * may be lower than this very frame (aarch64): there it is of no use, and its frame pointer tells all.
 */
static enum step_result step_interpreted(struct methods *methods, struct walk *w, const struct conventions *c,
					 struct caller *out, struct java_place *place)
{
	enum step_result result = step_by_frame_pointer(w, out);
	uint64_t fp = w->regs.r[w->arch->dwarf_fp], sender;
	struct java_place found = {0};

	if (result != STEP_FOUND)
		return result;
	if (!slot_at(w, fp, SENDER_SP, &sender) || !slot_at(w, fp, METHOD, &found.code) ||
	    !slot_at(w, fp, bytecode_slot(methods->layout, c), &found.place))
		return STEP_UNKNOWN;
	if (sender % WORD || !found.code || found.code % WORD || (w->exact && !executes(methods, w, c, &found)))
		return STEP_UNKNOWN;
	if (sender < fp + 2 * WORD)
		out->sp_is_bound = true;
	else
		regs_put(&out->regs, w->arch->dwarf_sp, sender);
	*place = found;
	return STEP_FOUND;
}

/*
 * A compiled frame that the virtual machine has given up has another return address, and keeps the true one. Its place is
 * what the frame stands for; the frame itself is as before.
 */
static enum step_result step_compiled(struct code_cache *cache, struct walk *w, const struct blob *blob, struct caller *out,
				      struct java_place *place)
{
	uint64_t slot, pc;

	if (!w->sp_is_bound && scopes_is_deoptimized(cache, blob, w->regs.pc, &slot)) {
		if (!walk_read_word(w, sp_of(w) + slot, &pc) || pc < blob->code_begin || pc >= blob->code_end)
			return STEP_UNKNOWN;
		place->place = pc;
	}
	return step_by_size(cache, w, blob, out);
}

/* Stubs that pick a method of an object have no frame: they jump on. */
static bool is_frameless(const struct blob *blob)
{
	return strncmp(blob->name, "vtable chunks", 13) == 0;
}

static bool is_code(struct code_cache *cache, const struct walk *w, uint64_t pc)
{
	return pc && (code_cache_owns(cache, pc) ? code_cache_find(cache, pc) != NULL : walk_is_code(w, pc - 1));
}

/* The caller's value of a register that a row tells of: it was saved, or never changed. */
static bool restore(struct walk *w, const struct cfi_row *row, uint64_t cfa, unsigned reg, uint64_t *out)
{
	if (row->regs[reg].kind == CFI_AT_CFA_OFFSET)
		return walk_read_word(w, cfa + (uint64_t)row->regs[reg].offset, out);
	*out = w->regs.r[reg];
	return row->regs[reg].kind == CFI_UNSPECIFIED && regs_has(&w->regs, reg);
}

/*
 * Whether the caller of a routine has a frame where it must be. The interpreter has none of its own yet when it calls one: it
 * does so in the place of a method, whose caller may be anywhere.
 */
static bool has_frame(struct code_cache *cache, struct walk *w, const struct caller *caller)
{
	const struct blob *blob = code_cache_find(cache, caller->regs.pc);
	uint64_t sp = caller->regs.r[w->arch->dwarf_sp], pc;

	if (!blob || stub_is_routine(blob))
		return is_code(cache, w, caller->regs.pc);
	return blob->frame_size && walk_read_word(w, sp + ((uint64_t)blob->frame_size - 1) * WORD, &pc) &&
	       is_code(cache, w, arch_strip_code_pointer(w->arch, pc));
}

static enum step_result step_by_code(struct code_cache *cache, struct walk *w, const struct blob *blob, struct caller *out)
{
	struct cfi_row row;
	uint64_t cfa, pc, fp;

	if (w->sp_is_bound || !stub_read_row(cache, w->arch, blob, w->regs.pc, w->exact, &row) ||
	    !regs_has(&w->regs, row.cfa.reg))
		return STEP_UNKNOWN;
	cfa = w->regs.r[row.cfa.reg] + (uint64_t)row.cfa.offset;
	if (cfa % WORD || cfa < sp_of(w) || !restore(w, &row, cfa, w->arch->dwarf_ra, &pc) ||
	    !restore(w, &row, cfa, w->arch->dwarf_fp, &fp))
		return STEP_UNKNOWN;
	set_caller(w, out, pc, cfa, fp);
	return has_frame(cache, w, out) ? STEP_FOUND : STEP_UNKNOWN;
}

/* Those that take frames off and put others there, such as the interpreter's. */
static bool rebuilds_stack(const struct blob *blob)
{
	return strcmp(blob->name, "DeoptimizationBlob") == 0 || strcmp(blob->name, "UncommonTrapBlob") == 0;
}

/* A stub whose frame is not known keeps a frame pointer, at least around the calls that it makes itself. */
static enum step_result step_in_stub(struct code_cache *cache, struct walk *w, const struct blob *blob, struct caller *out)
{
	if (blob->frame_size)
		return w->exact && rebuilds_stack(blob) ? STEP_UNKNOWN : step_by_size(cache, w, blob, out);
	if (stub_is_routine(blob) && step_by_code(cache, w, blob, out) == STEP_FOUND)
		return STEP_FOUND;
	if (w->exact)
		return is_frameless(blob) && !w->sp_is_bound ? step_by_link(w, sp_of(w), out) : STEP_UNKNOWN;
	out->flags = FRAME_BY_FRAME_POINTER;
	return step_by_frame_pointer(w, out);
}

/*
 * A virtual thread that goes on has only its innermost frames on the stack of its carrier. The last of them returns to a
 * stub that fetches more, with the frame pointer of the frame in which the carrier called it. What calls such a stub
 * otherwise is native code.
 */
static bool is_return_barrier(const struct code_cache *cache, const struct walk *w, const struct blob *blob)
{
	static const char name[] = "StubRoutines (continuation";

	return !w->exact && strncmp(blob->name, name, strlen(name)) == 0 && w->out->len > 1 &&
	       code_cache_owns(cache, w->out->data[w->out->len - 2].pc);
}

static enum step_result step_from_barrier(struct walk *w, const struct blob *blob, struct caller *out, struct java_place *place)
{
	*place = (struct java_place){.code = blob->start, .place = JAVA_PLACE_ELSEWHERE};
	return step_by_frame_pointer(w, out);
}

/* A caller is in executable code, and if that is the virtual machine's in a blob: else the frame was none. */
static enum step_result check_caller(struct code_cache *cache, const struct walk *w, enum step_result result,
				     const struct caller *out)
{
	return result == STEP_FOUND && !is_code(cache, w, out->regs.pc) ? STEP_UNKNOWN : result;
}

enum step_result java_step(struct code_cache *cache, struct methods *methods, struct walk *w, struct caller *out,
			   struct java_place *place)
{
	const struct conventions *c = conventions_of(w->arch);
	const struct blob *found = c ? code_cache_find(cache, w->regs.pc) : NULL;
	enum step_result result;
	struct blob blob;

	*place = (struct java_place){0};
	if (!found)
		return STEP_UNKNOWN;
	blob = *found;
	if (blob.kind == BLOB_INTERPRETER)
		return check_caller(cache, w, step_interpreted(methods, w, c, out, place), out);
	*place = (struct java_place){.code = blob.start, .place = w->regs.pc};
	if (w->regs.pc == cache->layout->facts[HS_CALL_RETURN])
		result = step_from_entry(w, c, out);
	else if (is_return_barrier(cache, w, &blob))
		result = step_from_barrier(w, &blob, out, place);
	else if (blob.kind == BLOB_COMPILED)
		result = step_compiled(cache, w, &blob, out, place);
	else
		result = step_in_stub(cache, w, &blob, out);
	return check_caller(cache, w, result, out);
}
