/* SPDX-License-Identifier: MIT */
#include "unwind/codeinfo.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "target/debugfile.h"
#include "unwind/ehabi.h"
#include "unwind/insn.h"

enum { MAX_REMEMBERED = 16384 }; /* about 700 bytes each */

/* The data in module.unwind. */
struct module_cfi {
	struct cfi_section eh_frame;
	struct cfi_section debug_frame;
	struct cfi_section separate; /* the debug file's .debug_frame */
	struct go_tables go;
	bool has_go;
	bool go_searched;
	struct image *debug;
	bool debug_searched;
	struct u64map known; /* address and exactness to struct code_info */
	struct arena *arena;
};

static const struct code_info unknown = {.kind = CODE_UNKNOWN};
static const struct code_info sigreturn = {.kind = CODE_SIGRETURN};
static const struct code_info start = {.kind = CODE_START};

static void module_cfi_destroy(void *p)
{
	struct module_cfi *cfi = p;

	if (!cfi)
		return;
	cfi_section_deinit(&cfi->eh_frame);
	cfi_section_deinit(&cfi->debug_frame);
	cfi_section_deinit(&cfi->separate);
	go_tables_deinit(&cfi->go);
	image_destroy(cfi->debug);
	u64map_deinit(&cfi->known);
	arena_destroy(cfi->arena);
	free(cfi);
}

/* Through the segment when there is one: the section headers may have been stripped. */
void code_open_eh_frame(struct cfi_section *section, const struct arch *arch, struct image *image)
{
	struct span hdr = image_eh_frame_hdr(image);
	struct span bytes = {0};
	uint64_t address, end;

	if (hdr.data && cfi_eh_frame_address(hdr, &address))
		bytes = image_bytes_at(image, address);
	if (!bytes.data) {
		bytes = image_section(image, ".eh_frame");
		hdr = (struct span){0};
	}
	cfi_section_init(section, CFI_EH_FRAME, arch, bytes, hdr);
	image_code_bounds(image, &section->text, &end);
}

void code_open_debug_frame(struct cfi_section *section, const struct arch *arch, struct image *image)
{
	cfi_section_init(section, CFI_DEBUG_FRAME, arch, image_section(image, ".debug_frame"), (struct span){0});
}

bool code_is_walkable(const struct image *image, const struct arch *arch)
{
	return image_machine(image) == arch->elf_machine && image_is_64bit(image) == (arch->word == 8) && !image_is_big_endian(image);
}

static struct module_cfi *module_cfi_get(struct module *module, const struct arch *arch)
{
	struct module_cfi *cfi = module->unwind;

	if (cfi || !module->image || !code_is_walkable(module->image, arch))
		return cfi;
	cfi = calloc(1, sizeof(*cfi));
	if (!cfi)
		return NULL;
	code_open_eh_frame(&cfi->eh_frame, arch, module->image);
	code_open_debug_frame(&cfi->debug_frame, arch, module->image);
	module->unwind = cfi;
	module->unwind_free = module_cfi_destroy;
	return cfi;
}

/* Once per module, and only for code that the module itself says nothing about. */
static void search_debug_file(struct module_cfi *cfi, struct module *module, const struct arch *arch)
{
	const struct debugfile_query query = {
		.image = module->image, .path = module->info.path, .root_fd = module->root_fd};

	if (cfi->debug_searched)
		return;
	cfi->debug_searched = true;
	if (debugfile_find(&query, NULL, &cfi->debug) != 0)
		cfi->debug = NULL;
	else if (code_is_walkable(cfi->debug, arch))
		code_open_debug_frame(&cfi->separate, arch, cfi->debug);
}

static bool find_debug_row(struct module_cfi *cfi, struct module *module, const struct arch *arch,
			   struct budget *budget, uint64_t vaddr, struct cfi_row *out)
{
	if (cfi_find_row(&cfi->debug_frame, budget, vaddr, out) == 0)
		return true;
	search_debug_file(cfi, module, arch);
	return cfi_find_row(&cfi->separate, budget, vaddr, out) == 0;
}

static bool find_go_row(struct module_cfi *cfi, struct module *module, const struct arch *arch, struct budget *budget,
			uint64_t vaddr, bool exact, struct code_info *out)
{
	struct go_row row;

	if (arch->word != 8)
		return false;
	if (!cfi->go_searched) {
		cfi->has_go = go_tables_init(&cfi->go, module->image, budget, NULL) == 0;
		cfi->go_searched = cfi->has_go || !budget || !budget->refused;
	}
	if (!cfi->has_go || !go_rows_find(&cfi->go, arch, budget, vaddr, exact, &row))
		return false;
	*out = (struct code_info){.kind = CODE_GO, .go = row.kind, .row = row.row};
	return true;
}

/*
 * C code that is linked into a Go program has .eh_frame, Go's own never has. Go's tables come before .debug_frame,
 * which is made of them, but does not tell where stacks are changed.
 */
static bool find_row(struct module_cfi *cfi, struct module *module, const struct arch *arch, struct budget *budget,
		     uint64_t vaddr, bool exact, struct code_info *out)
{
	out->kind = CODE_CFI;
	if (cfi_find_row(&cfi->eh_frame, budget, vaddr, &out->row) == 0 ||
	    find_go_row(cfi, module, arch, budget, vaddr, exact, out) ||
	    find_debug_row(cfi, module, arch, budget, vaddr, &out->row))
		return true;
	out->kind = CODE_EHABI;
	return arch->id == ARCH_ARM && ehabi_find_row(module->image, vaddr, &out->row) == 0;
}

/* Puts the constant, or a copy of what was found, into the map; it lives as long as the module. NULL: out of memory. */
static const struct code_info *remember(struct module_cfi *cfi, uint64_t key, const struct code_info *constant,
					const struct code_info *found)
{
	uint64_t *value;
	bool created;

	if (cfi->known.len >= MAX_REMEMBERED) {
		u64map_deinit(&cfi->known);
		arena_destroy(cfi->arena);
		cfi->arena = NULL;
	}
	if (!cfi->arena)
		cfi->arena = arena_create();
	if (!cfi->arena)
		return NULL;
	if (!constant) {
		struct code_info *copy = arena_alloc(cfi->arena, sizeof(*copy));

		if (!copy)
			return NULL;
		*copy = *found;
		constant = copy;
	}
	value = u64map_put(&cfi->known, key, &created);
	if (!value)
		return NULL;
	*value = (uint64_t)(uintptr_t)constant;
	return constant;
}

/* A return address that no call has left, and before which there is no function: only padding. */
static bool is_start(struct module_cfi *cfi, struct module *module, const struct arch *arch, struct budget *budget,
		     uint64_t vaddr)
{
	struct code_info there;

	return !insn_ends_call(arch, image_bytes_at(module->image, vaddr - INSN_MAX_CALL), vaddr) &&
	       find_row(cfi, module, arch, budget, vaddr, true, &there);
}

static bool is_sigreturn(const struct image *image, const struct arch *arch, uint64_t vaddr)
{
	struct span code = image_bytes_at(image, vaddr);

	return code.data && arch_is_sigreturn(arch, code.data, code.len);
}

const struct code_info *code_info_find(struct module *module, const struct arch *arch, struct budget *budget,
				       uint64_t vaddr, bool exact)
{
	struct module_cfi *cfi = module_cfi_get(module, arch);
	uint64_t key = vaddr << 1 | exact;
	const struct code_info *info, *constant = &unknown;
	struct code_info found;
	const uint64_t *known;

	if (!cfi)
		return &unknown;
	known = u64map_find(&cfi->known, key);
	if (known)
		return (const struct code_info *)(uintptr_t)*known;

	/*
	 * The bytes of the trampoline come before its CFI: that of aarch64's vDSO is for exceptions only, and musl's
	 * has none.
	 */
	if (is_sigreturn(module->image, arch, vaddr)) {
		constant = &sigreturn;
	} else if (find_row(cfi, module, arch, budget, exact ? vaddr : vaddr - 1, exact, &found)) {
		constant = NULL;
	} else if (!exact && is_start(cfi, module, arch, budget, vaddr)) {
		constant = &start;
	} else if (insn_read_row(module->image, arch, budget, vaddr, &found.row)) {
		found.kind = CODE_READ;
		constant = NULL;
	}
	if (budget && budget->refused)
		return &unknown;
	info = remember(cfi, key, constant, &found);
	return info ? info : &unknown;
}
