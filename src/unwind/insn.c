/* SPDX-License-Identifier: MIT */
#include "unwind/insn.h"

#include "base/map.h"

enum {
	MAX_PATHS = 32,   /* branches not yet followed */
	MAX_INSNS = 4096, /* over all paths */
	INSN_COST = 8,    /* of the budget */
	WORD = 8,
};

/* A place to continue from, with the state that the code before it left. */
struct path {
	uint64_t vaddr;
	struct insn_state state;
};

struct reader {
	const struct insn_source *source;
	const struct insn_ops *ops;
	struct u64map visited;
	unsigned ninsns;
	struct path *paths;
	unsigned npaths;
	struct budget *budget;
};

static const struct insn_ops *ops_for(const struct arch *arch)
{
	switch (arch->id) {
	case ARCH_X86_64:
		return &insn_x86_64;
	case ARCH_AARCH64:
		return &insn_aarch64;
	case ARCH_I386:
		return &insn_i386;
	case ARCH_ARM:
		return &insn_arm;
	}
	return NULL;
}

bool insn_follows_call(const struct arch *arch, const uint8_t *before, size_t len, uint64_t address, uint64_t *target)
{
	return ops_for(arch)->follows_call(before, len, address, target);
}

bool insn_follows_jump(const struct arch *arch, const uint8_t before[static INSN_JUMP_BYTES], uint64_t address)
{
	const struct insn_ops *ops = ops_for(arch);

	return ops->follows_jump && ops->follows_jump(before, address);
}

bool insn_ends_call(const struct arch *arch, struct span code, uint64_t address)
{
	uint64_t offset = address - code.vaddr, target;

	return code.data && offset >= INSN_MAX_CALL && offset <= code.len &&
	       insn_follows_call(arch, code.data + offset - INSN_MAX_CALL, INSN_MAX_CALL, address, &target);
}

bool insn_is_exit(const struct arch *arch, const uint8_t *code, size_t len)
{
	return ops_for(arch)->is_exit(code, len);
}

bool insn_is_context_end(const struct arch *arch, const uint8_t code[static INSN_CONTEXT_BYTES])
{
	return ops_for(arch)->is_context_end(code);
}

/* True once per address: a loop is read once. */
static bool visit(struct reader *r, uint64_t vaddr)
{
	bool created = false;

	return r->ninsns++ < MAX_INSNS && budget_take(r->budget, INSN_COST) && u64map_put(&r->visited, vaddr, &created) && created;
}

static void add_path(struct reader *r, uint64_t vaddr, const struct insn_state *state)
{
	if (r->npaths < MAX_PATHS)
		r->paths[r->npaths++] = (struct path){.vaddr = vaddr, .state = *state};
}

/* Follows one path to its end; true when that is a return. */
static bool follow(struct reader *r, struct path *path)
{
	struct span code = {0};
	struct insn insn;

	while (visit(r, path->vaddr)) {
		uint64_t skip = path->vaddr - code.vaddr;

		if (path->vaddr < code.vaddr || skip >= code.len || code.len - skip < INSN_MAX_LEN) {
			code = r->source->at(r->source->ctx, path->vaddr);
			skip = path->vaddr - code.vaddr;
			if (!code.data)
				return false;
		}
		insn = (struct insn){.flow = INSN_NEXT};
		if (!r->ops->step(code.data + skip, code.len - skip, path->vaddr, &path->state, &insn))
			return false;
		if (insn.flow == INSN_RETURN)
			return true;
		if (insn.flow == INSN_STOP)
			return false;
		if (insn.flow == INSN_BRANCH)
			add_path(r, insn.target, &path->state);
		path->vaddr = insn.flow == INSN_JUMP ? insn.target : path->vaddr + insn.len;
	}
	return false;
}

static void put_saved(struct cfi_row *row, unsigned reg, const struct insn_slot *slot, const struct insn_slot *cfa)
{
	if (!slot->known)
		return;
	if (slot->from_fp != cfa->from_fp || slot->offset >= cfa->offset) /* beyond the frame: an argument was loaded */
		row->regs[reg] = (struct cfi_rule){.kind = CFI_UNDEFINED};
	else
		row->regs[reg] = (struct cfi_rule){
			.kind = CFI_AT_CFA_OFFSET,
			.offset = (int64_t)((uint64_t)slot->offset - (uint64_t)cfa->offset),
		};
}

/* The state just before the return, as a row. */
static bool make_row(const struct arch *arch, const struct insn_state *state, struct cfi_row *out)
{
	struct insn_slot cfa = state->sp;

	if (!cfa.from_fp && cfa.offset < 0) /* another function's return, run into after a call that does not return */
		return false;
	*out = (struct cfi_row){.ra_reg = arch->dwarf_ra};
	if (!arch->ra_in_register)
		cfa.offset = insn_add(cfa.offset, WORD);
	else if (state->lost >> arch->dwarf_ra & 1)
		return false;
	out->cfa = (struct cfi_rule){
		.kind = CFI_REGISTER_OFFSET,
		.reg = cfa.from_fp ? arch->dwarf_fp : arch->dwarf_sp,
		.offset = cfa.offset,
	};
	for (unsigned reg = 0; reg < arch->ndwarf_regs; reg++)
		if (arch->callee_saved >> reg & 1 || reg == arch->dwarf_ra)
			put_saved(out, reg, &state->saved[reg], &cfa);
	if (!arch->ra_in_register)
		out->regs[arch->dwarf_ra] = (struct cfi_rule){.kind = CFI_AT_CFA_OFFSET, .offset = -WORD};
	return true;
}

static struct insn_state begin(void)
{
	return (struct insn_state){.sp = {.known = true}, .fp = {.known = true, .from_fp = true}};
}

bool insn_read_source(const struct insn_source *source, const struct arch *arch, struct budget *budget, uint64_t address,
		      bool is_returned_to, struct cfi_row *out)
{
	struct path paths[MAX_PATHS];
	struct reader r = {.source = source, .ops = ops_for(arch), .paths = paths, .budget = budget};
	struct insn_state start = begin();
	bool found = false;

	if (is_returned_to && arch->ra_in_register)
		start.lost = UINT64_C(1) << arch->dwarf_ra;
	add_path(&r, address, &start);
	while (r.npaths && !found) {
		struct path path = r.paths[--r.npaths];

		found = follow(&r, &path) && make_row(arch, &path.state, out);
	}
	u64map_deinit(&r.visited);
	if (found) {
		out->start = address;
		out->end = address + 1;
	}
	return found;
}

static struct span image_code_at(void *ctx, uint64_t address)
{
	return image_bytes_at(ctx, address);
}

bool insn_read_row(const struct image *image, const struct arch *arch, struct budget *budget, uint64_t vaddr,
		   struct cfi_row *out)
{
	struct insn_source source = {.at = image_code_at, .ctx = (void *)image};

	return insn_read_source(&source, arch, budget, vaddr, false, out);
}

struct insn_state insn_follow_straight(const struct arch *arch, const uint8_t *code, size_t len, uint64_t address)
{
	struct insn_state state = begin();
	struct insn insn = {.flow = INSN_NEXT};

	for (size_t at = 0; at < len && insn.flow == INSN_NEXT && !state.after_call; at += insn.len) {
		insn = (struct insn){.flow = INSN_NEXT};
		if (!ops_for(arch)->step(code + at, len - at, address + at, &state, &insn))
			break;
	}
	return state;
}

bool insn_read_straight(const struct arch *arch, const uint8_t *code, size_t len, uint64_t address, struct cfi_row *out)
{
	struct insn_state state = begin();
	struct insn insn = {.flow = INSN_NEXT};

	for (size_t at = 0; at < len && insn.flow == INSN_NEXT; at += insn.len) {
		insn = (struct insn){.flow = INSN_NEXT};
		if (!ops_for(arch)->step(code + at, len - at, address + at, &state, &insn))
			return false;
	}
	return insn.flow == INSN_RETURN && make_row(arch, &state, out);
}
