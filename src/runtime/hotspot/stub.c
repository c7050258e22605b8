/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/stub.h"

#include <string.h>

#include "unwind/insn.h"

enum {
	WINDOW = 64,  /* bytes of code that are read at once, */
	AHEAD = 2048, /* and that are asked for at once: a loop, and what comes behind it */
};

struct routine {
	struct code_cache *cache;
	const struct blob *blob;
	uint8_t bytes[WINDOW];
};

/* Those of virtual threads exchange the stack below them. */
bool stub_is_routine(const struct blob *blob)
{
	static const char start[] = "StubRoutines (", other[] = "StubRoutines (continuation";

	return blob->kind == BLOB_STUB && !blob->frame_size && strncmp(blob->name, start, sizeof(start) - 1) == 0 &&
	       strncmp(blob->name, other, sizeof(other) - 1) != 0;
}

static struct span read_code(void *ctx, uint64_t address)
{
	struct routine *r = ctx;
	uint64_t end = r->blob->code_end, len = address < end ? end - address : 0;

	if (address < r->blob->code_begin || !len)
		return (struct span){0};
	if (!pages_read(r->cache->pages, address, r->bytes, len < WINDOW ? len : WINDOW)) {
		pages_foresee(r->cache->pages, address, len < AHEAD ? len : AHEAD);
		return (struct span){0};
	}
	return (struct span){.data = r->bytes, .len = len < WINDOW ? len : WINDOW, .vaddr = address};
}

bool stub_read_row(struct code_cache *cache, const struct arch *arch, const struct blob *blob, uint64_t pc, bool is_exact,
		   struct cfi_row *out)
{
	struct routine routine = {.cache = cache, .blob = blob};
	struct insn_source source = {.at = read_code, .ctx = &routine};

	return insn_read_source(&source, arch, NULL, pc, !is_exact, out);
}

static bool is_at_cfa(const struct cfi_row *row, unsigned reg, int64_t offset)
{
	return row->regs[reg].kind == CFI_AT_CFA_OFFSET && row->regs[reg].offset == offset;
}

static uint16_t pack(enum offcpu_stub_kind kind, int64_t bytes)
{
	if (bytes < 0 || bytes % 8 || bytes / 8 >= OFFCPU_STUB_WORDS)
		return OFFCPU_STUB_UNKNOWN;
	return (uint16_t)(kind | bytes / 8 << OFFCPU_STUB_SHIFT);
}

/* What is none of the usual forms is not told. */
static uint16_t pack_row(const struct arch *arch, const struct cfi_row *row)
{
	const bool from_sp = row->cfa.reg == arch->dwarf_sp, has_fp = row->regs[arch->dwarf_fp].kind == CFI_UNSPECIFIED;

	if (row->cfa.kind != CFI_REGISTER_OFFSET || (!from_sp && row->cfa.reg != arch->dwarf_fp))
		return OFFCPU_STUB_UNKNOWN;
	if (is_at_cfa(row, arch->dwarf_ra, -8) && is_at_cfa(row, arch->dwarf_fp, -16))
		return pack(from_sp ? OFFCPU_STUB_FROM_SP : OFFCPU_STUB_FROM_FP, row->cfa.offset);
	if (!from_sp || !has_fp)
		return OFFCPU_STUB_UNKNOWN;
	if (arch->ra_in_register)
		return row->regs[arch->dwarf_ra].kind == CFI_UNSPECIFIED ? pack(OFFCPU_STUB_LINK, row->cfa.offset) : OFFCPU_STUB_UNKNOWN;
	return is_at_cfa(row, arch->dwarf_ra, -8) ? pack(OFFCPU_STUB_LINK, row->cfa.offset - 8) : OFFCPU_STUB_UNKNOWN;
}

void stub_fill_rows(struct code_cache *cache, const struct arch *arch, const struct blob *blob, uint64_t address,
		    struct offcpu_stub_rows *out)
{
	const unsigned step = arch->ra_in_register ? 4 : 1; /* how long an instruction is at least */
	struct cfi_row row;

	*out = (struct offcpu_stub_rows){0};
	for (unsigned i = 0; i < OFFCPU_STUB_BLOCK; i += step)
		if (address + i >= blob->code_begin && address + i < blob->code_end &&
		    stub_read_row(cache, arch, blob, address + i, true, &row))
			out->rows[i] = pack_row(arch, &row);
}
