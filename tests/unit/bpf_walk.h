/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_BPF_WALK_H
#define STAKEOUT_TESTS_BPF_WALK_H

#include "cmocka_all.h"

#include "target/modules.h"
#include "model/mem.h"
#include "unwind/bpf_rows.h"

/*
 * The walk that the BPF program does by struct unwind_row, in plain C: what the rows mean, for comparison with the
 * snapshot's unwinder. Code without CFI is walked by frame pointer.
 */

enum bpf_walk_end {
	BPF_WALK_COMPLETE,
	BPF_WALK_NO_TABLES,
	BPF_WALK_NO_UNWIND, /* no CFI, and the frame pointer leads nowhere */
	BPF_WALK_UNSUPPORTED,
	BPF_WALK_FAULT,
	BPF_WALK_NO_PROGRESS,
	BPF_WALK_DEPTH,
};

struct bpf_walk_table {
	const struct module *module;
	struct bpf_rows rows;
};

struct bpf_walk {
	const struct arch *arch;
	struct modules *modules;
	struct mem *mem;
	VEC(struct bpf_walk_table) tables;

	uint64_t pc, sp, fp, lr;
	bool exact; /* pc is not a return address */
	bool has_fp, has_lr;
	bool sp_is_bound; /* aarch64, after a frame record: sp is only known not to be lower */
	enum bpf_walk_end end;
	unsigned by_frame_pointer; /* steps */
};

static inline bool bpf_walk_stop(struct bpf_walk *w, enum bpf_walk_end end)
{
	w->end = end;
	return false;
}

static inline bool bpf_walk_read(struct bpf_walk *w, uint64_t address, uint64_t *out)
{
	return mem_read_exact(w->mem, address, out, sizeof(*out));
}

static inline const struct unwind_row *bpf_walk_search(const struct bpf_rows *rows, uint64_t vaddr)
{
	uint64_t at = vaddr - rows->base;
	size_t low = 0, high = rows->len;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (rows->data[mid].pc <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &rows->data[low - 1] : NULL;
}

static inline const struct bpf_rows *bpf_walk_rows(struct bpf_walk *w, const struct module *module)
{
	struct bpf_walk_table table = {.module = module};

	for (size_t i = 0; i < w->tables.len; i++)
		if (w->tables.data[i].module == module)
			return &w->tables.data[i].rows;
	if (!module->image || bpf_rows_build(module->image, w->arch, NULL, &table.rows) != 0)
		return NULL;
	assert_true(vec_push(&w->tables, table));
	return &w->tables.data[w->tables.len - 1].rows;
}

static inline void bpf_walk_deinit(struct bpf_walk *w)
{
	for (size_t i = 0; i < w->tables.len; i++)
		bpf_rows_deinit(&w->tables.data[i].rows);
	vec_deinit(&w->tables);
}

static inline bool bpf_walk_by_frame_pointer(struct bpf_walk *w)
{
	uint64_t fp, pc;

	if (!w->has_fp || w->fp < w->sp || w->fp % 8 || !w->fp)
		return bpf_walk_stop(w, BPF_WALK_NO_UNWIND);
	if (!bpf_walk_read(w, w->fp, &fp) || !bpf_walk_read(w, w->fp + 8, &pc))
		return bpf_walk_stop(w, BPF_WALK_FAULT);
	w->sp = w->fp + 16;
	w->sp_is_bound = !w->arch->fp_gives_sp;
	w->fp = fp;
	w->pc = arch_strip_code_pointer(w->arch, pc);
	w->exact = w->has_lr = false;
	w->by_frame_pointer++;
	return w->pc || bpf_walk_stop(w, BPF_WALK_COMPLETE);
}

/* The register that may have the return address: see unwind_row.h. */
static inline unsigned bpf_walk_link(const struct arch *arch)
{
	enum { RDI = 5 };

	return arch->id == ARCH_X86_64 ? RDI : arch->dwarf_ra;
}

static inline bool bpf_walk_over_signal(struct bpf_walk *w)
{
	const struct arch *arch = w->arch;
	uint64_t frame = w->sp;

	if (!bpf_walk_read(w, frame + (uint64_t)arch->sigframe_pc_offset, &w->pc) ||
	    !bpf_walk_read(w, frame + (uint64_t)arch->sigframe_offset[arch->dwarf_sp], &w->sp) ||
	    !bpf_walk_read(w, frame + (uint64_t)arch->sigframe_offset[arch->dwarf_fp], &w->fp) ||
	    !bpf_walk_read(w, frame + (uint64_t)arch->sigframe_offset[bpf_walk_link(arch)], &w->lr))
		return bpf_walk_stop(w, BPF_WALK_FAULT);
	w->exact = w->has_fp = w->has_lr = true;
	w->sp_is_bound = false;
	return true;
}

static inline bool bpf_walk_cfa(struct bpf_walk *w, const struct unwind_row *row, uint64_t *cfa)
{
	const unsigned record = UNWIND_FP_AT_CFA | UNWIND_RA_AT_CFA;
	uint64_t offset = 8 * (uint64_t)(int64_t)row->cfa, added = 8 * (uint64_t)(int64_t)row->ra;

	if ((row->kind == UNWIND_FROM_FP || row->kind == UNWIND_AT_FP) && !w->has_fp)
		return bpf_walk_stop(w, BPF_WALK_NO_UNWIND);
	if (w->sp_is_bound && row->kind != UNWIND_FROM_FP) {
		/* the frame record is at fp, and the row tells how far that is from the CFA */
		if ((row->flags & record) != record || row->ra != row->fp + 1 || !w->has_fp)
			return bpf_walk_stop(w, BPF_WALK_NO_UNWIND);
		*cfa = w->fp - 8 * (uint64_t)(int64_t)row->fp;
		return true;
	}
	switch (row->kind) {
	case UNWIND_FROM_FP:
		*cfa = w->fp + offset;
		return true;
	case UNWIND_PLT:
		*cfa = w->sp + 8 + ((w->pc & 15) >= (uint64_t)row->cfa ? 8 : 0);
		return true;
	case UNWIND_FAR_FROM_SP:
		*cfa = w->sp + 8 * ((uint64_t)row->ra << 16 | (uint16_t)row->cfa);
		return true;
	case UNWIND_AT_SP:
	case UNWIND_AT_FP:
		if (!bpf_walk_read(w, (row->kind == UNWIND_AT_SP ? w->sp : w->fp) + offset, cfa))
			return bpf_walk_stop(w, BPF_WALK_FAULT);
		*cfa += added;
		return true;
	default:
		*cfa = w->sp + offset;
		return true;
	}
}

static inline bool bpf_walk_by_row(struct bpf_walk *w, const struct unwind_row *row)
{
	bool is_far = row->kind >= UNWIND_FAR_FROM_SP;
	uint64_t cfa, pc = w->lr, fp = w->fp;

	if (!bpf_walk_cfa(w, row, &cfa))
		return false;
	if (is_far || row->flags & UNWIND_RA_AT_CFA) {
		if (!bpf_walk_read(w, cfa + 8 * (uint64_t)(int64_t)(is_far ? -1 : row->ra), &pc))
			return bpf_walk_stop(w, BPF_WALK_FAULT);
	} else if (!w->has_lr) { /* a later call has overwritten it */
		return bpf_walk_stop(w, BPF_WALK_NO_PROGRESS);
	}
	if (row->flags & UNWIND_FP_AT_CFA && !bpf_walk_read(w, cfa + 8 * (uint64_t)(int64_t)row->fp, &fp))
		return bpf_walk_stop(w, BPF_WALK_FAULT);
	if (row->flags & UNWIND_FP_AT_FP && !bpf_walk_read(w, w->fp, &fp))
		return bpf_walk_stop(w, BPF_WALK_FAULT);
	pc = arch_strip_code_pointer(w->arch, pc);
	if (cfa < w->sp || (cfa == w->sp && (!w->exact || pc == w->pc)))
		return bpf_walk_stop(w, BPF_WALK_NO_PROGRESS);
	if (row->flags & (UNWIND_FP_AT_CFA | UNWIND_FP_AT_FP))
		w->has_fp = true;
	if (row->flags & UNWIND_FP_LOST)
		w->has_fp = false;
	w->sp = cfa;
	w->fp = fp;
	w->pc = pc;
	w->exact = w->has_lr = w->sp_is_bound = false;
	return true;
}

/* To the caller; false at the end, which is in w->end. */
static inline bool bpf_walk_step(struct bpf_walk *w)
{
	uint64_t vaddr;
	const struct module *module = modules_find(w->modules, w->pc - !w->exact, &vaddr);
	const struct bpf_rows *rows = module ? bpf_walk_rows(w, module) : NULL;
	const struct unwind_row *row = rows ? bpf_walk_search(rows, vaddr) : NULL;

	switch (row ? row->kind : UNWIND_NONE) {
	case UNWIND_NONE:
		return bpf_walk_by_frame_pointer(w);
	case UNWIND_SIGNAL:
		return bpf_walk_over_signal(w);
	case UNWIND_END:
		return bpf_walk_stop(w, BPF_WALK_COMPLETE);
	case UNWIND_UNSUPPORTED:
		return bpf_walk_stop(w, BPF_WALK_UNSUPPORTED);
	default:
		return bpf_walk_by_row(w, row);
	}
}

#endif
