/* SPDX-License-Identifier: MIT */
#include "elf/plt.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/map.h"
#include "elf/symrecords.h"

struct stub {
	uint64_t start;
	uint64_t end;
	uint64_t slot; /* the address of the pointer it jumps through */
};

struct plt_arch {
	uint16_t machine;
	uint32_t jump_slot, glob_dat; /* relocation types */
	uint32_t step;                /* stubs start at multiples of this */
	/* Decodes the stub at the start of `code`, which has the address `pc`. */
	bool (*decode)(const uint8_t *code, size_t len, uint64_t pc, struct stub *out);
};

/* [endbr64] [bnd] jmp *slot(%rip) */
static bool decode_x86_64(const uint8_t *code, size_t len, uint64_t pc, struct stub *out)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct cursor c = cursor_init(code, len);
	uint8_t first;

	if (len > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		cursor_skip(&c, sizeof(endbr64));
	first = cursor_u8(&c);
	if (first == 0xf2)
		first = cursor_u8(&c);
	if (first != 0xff || cursor_u8(&c) != 0x25)
		return false;
	out->slot = (uint64_t)cursor_sint(&c, 4);
	out->slot += pc + cursor_offset(&c);
	out->start = pc;
	out->end = pc + 16; /* or 8 in .plt.got, where the next stub then begins */
	return !c.bad;
}

/* [bti c] adrp x16, slot; ldr x17, [x16, slot]; add x16, x16, slot; br x17 */
static bool decode_aarch64(const uint8_t *code, size_t len, uint64_t pc, struct stub *out)
{
	struct cursor c = cursor_init(code, len);
	uint32_t insn = cursor_u32(&c);
	uint64_t adrp_pc = pc;
	uint32_t ldr;
	int64_t pages;

	if (insn == 0xd503245f) {
		insn = cursor_u32(&c);
		adrp_pc += 4;
	}
	ldr = cursor_u32(&c);
	if (c.bad || (insn & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (int64_t)((uint64_t)((insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3)) << 43) >> 43;
	out->slot = (adrp_pc & ~UINT64_C(0xfff)) + (uint64_t)pages * 4096 + (uint64_t)(ldr >> 10 & 0xfff) * 8;
	out->start = pc;
	out->end = adrp_pc + 16;
	return true;
}

static const struct plt_arch archs[] = {
	{EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, 8, decode_x86_64},
	{EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, 4, decode_aarch64},
};

static const struct plt_arch *find_arch(struct image *image)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		if (archs[i].machine == image_machine(image))
			return &archs[i];
	return NULL;
}

/* Its name, if that is terminated. */
static const char *symbol_name(struct symrecords *symbols, uint64_t index)
{
	struct symrecords at = *symbols;
	const char *name;
	Elf64_Sym sym;
	size_t len;

	if (!symrecords_seek(&at, index) || !symrecords_next(&at, &sym))
		return NULL;
	name = symrecords_name(&at, &sym, &len);
	return name && len > 0 && len < SYMRECORDS_MAX_NAME ? name : NULL;
}

static bool read_relocation(const struct image *image, struct cursor *c, Elf64_Rela *out)
{
	unsigned word = image_is_64bit(image) ? 8 : 4;

	out->r_offset = cursor_uint(c, word);
	out->r_info = cursor_uint(c, word);
	out->r_addend = cursor_sint(c, word);
	if (word == 4)
		out->r_info = ELF64_R_INFO(ELF32_R_SYM(out->r_info), ELF32_R_TYPE(out->r_info));
	return !c->bad;
}

static bool read_relocations(const struct plt_arch *arch, struct image *image, size_t section, uint64_t *budget,
			     struct u64map *slots)
{
	struct symrecords symbols = symrecords_init(image, image_shdr(image, section)->sh_link, budget);
	struct span bytes = image_shdr_bytes(image, section);
	struct cursor c = cursor_init(bytes.data, bytes.len);
	Elf64_Rela rela;

	c.big_endian = image_is_big_endian(image);
	while (symrecords_charge(&symbols, 1) && read_relocation(image, &c, &rela)) {
		uint32_t type = (uint32_t)ELF64_R_TYPE(rela.r_info);
		const char *name;
		uint64_t *value;
		bool created;

		if (type != arch->jump_slot && type != arch->glob_dat)
			continue;
		name = symbol_name(&symbols, ELF64_R_SYM(rela.r_info));
		if (!name)
			continue;
		value = u64map_put(slots, rela.r_offset, &created);
		if (!value)
			return false;
		*value = (uintptr_t)name;
	}
	return true;
}

/* The names of the pointers that stubs jump through. */
static bool read_slots(const struct plt_arch *arch, struct image *image, struct u64map *slots)
{
	uint64_t budget = symrecords_budget(image);
	const Elf64_Shdr *shdr;

	for (size_t i = 1; (shdr = image_shdr(image, i)); i++)
		if (shdr->sh_type == SHT_RELA && (shdr->sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) == SHF_ALLOC &&
		    !read_relocations(arch, image, i, &budget, slots))
			return false;
	return true;
}

bool plt_read(struct image *image, plt_visit visit, void *ctx)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	const struct plt_arch *arch = find_arch(image);
	_cleanup_(u64map_deinit) struct u64map slots = {0};

	if (!arch)
		return true;
	if (!read_slots(arch, image, &slots))
		return false;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct span code = image_section(image, sections[i]);

		for (size_t at = 0; code.data && at < code.len; at += arch->step) {
			struct stub stub;
			uint64_t *name;

			if (!arch->decode(code.data + at, code.len - at, code.vaddr + at, &stub))
				continue;
			name = u64map_find(&slots, stub.slot);
			if (name && !visit(ctx, stub.start, stub.end, (const char *)(uintptr_t)*name))
				return false;
		}
	}
	return true;
}
