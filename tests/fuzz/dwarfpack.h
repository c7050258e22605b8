/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_DWARFPACK_H
#define STAKEOUT_TESTS_DWARFPACK_H

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/image.h"
#include "memfile.h"

/*
 * Fuzzers of DWARF get its sections without ELF around them, which would break before anything else does: a byte that
 * is odd for big-endian ones, then for each of these its length (two bytes, little-endian) and its bytes. The code is
 * at 0x1000. tests/fuzz/make-dwarf-seeds packs compiled programs so.
 */
static const char *const dwarfpack_sections[] = {
	".debug_info",     ".debug_abbrev",          ".debug_line",         ".debug_str",
	".debug_line_str", ".debug_str_offsets",     ".debug_addr",         ".debug_ranges",
	".debug_rnglists", ".debug_aranges",         ".debug_info.dwo",     ".debug_abbrev.dwo",
	".debug_str.dwo",  ".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_cu_index",
};

enum {
	DWARFPACK_SECTIONS = sizeof(dwarfpack_sections) / sizeof(dwarfpack_sections[0]),
	DWARFPACK_CODE = 0x1000,
	DWARFPACK_CODE_SIZE = 0x10000,
	DWARFPACK_NAMES = 512,
};

static inline uint16_t dwarfpack_16(uint16_t value, bool swap)
{
	return swap ? __builtin_bswap16(value) : value;
}

static inline uint32_t dwarfpack_32(uint32_t value, bool swap)
{
	return swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t dwarfpack_64(uint64_t value, bool swap)
{
	return swap ? __builtin_bswap64(value) : value;
}

struct dwarfpack {
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdrs[DWARFPACK_SECTIONS + 3]; /* of none, of the code, of the names */
	char names[DWARFPACK_NAMES];
};

static inline void dwarfpack_section(struct dwarfpack *pack, unsigned number, const char *name, bool swap)
{
	size_t at = 1;

	while (pack->names[at])
		at += strlen(pack->names + at) + 1;
	strcpy(pack->names + at, name);
	pack->shdrs[number].sh_name = dwarfpack_32((uint32_t)at, swap);
	pack->shdrs[number].sh_type = dwarfpack_32(SHT_PROGBITS, swap);
	pack->shdrs[number].sh_addralign = dwarfpack_64(1, swap);
}

/* An ELF file of the sections, opened; for image_destroy. */
static inline struct image *dwarfpack_image(const uint8_t *data, size_t size)
{
	struct dwarfpack pack = {0};
	bool swap = size && (data[0] & 1);
	size_t at = 1, len = sizeof(pack) + size;
	struct image *image = NULL;
	uint8_t *file = malloc(len);

	if (!file)
		abort();
	memcpy(pack.ehdr.e_ident, ELFMAG, SELFMAG);
	pack.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	pack.ehdr.e_ident[EI_DATA] = swap ? ELFDATA2MSB : ELFDATA2LSB;
	pack.ehdr.e_ident[EI_VERSION] = EV_CURRENT;
	pack.ehdr.e_type = dwarfpack_16(ET_DYN, swap);
	pack.ehdr.e_version = dwarfpack_32(EV_CURRENT, swap);
	pack.ehdr.e_ehsize = dwarfpack_16(sizeof(Elf64_Ehdr), swap);
	pack.ehdr.e_shentsize = dwarfpack_16(sizeof(Elf64_Shdr), swap);
	pack.ehdr.e_shnum = dwarfpack_16(DWARFPACK_SECTIONS + 3, swap);
	pack.ehdr.e_shstrndx = dwarfpack_16(2, swap);
	pack.ehdr.e_shoff = dwarfpack_64(offsetof(struct dwarfpack, shdrs), swap);
	dwarfpack_section(&pack, 1, ".text", swap);
	pack.shdrs[1].sh_type = dwarfpack_32(SHT_NOBITS, swap);
	pack.shdrs[1].sh_flags = dwarfpack_64(SHF_ALLOC | SHF_EXECINSTR, swap);
	pack.shdrs[1].sh_addr = dwarfpack_64(DWARFPACK_CODE, swap);
	pack.shdrs[1].sh_size = dwarfpack_64(DWARFPACK_CODE_SIZE, swap);
	dwarfpack_section(&pack, 2, ".shstrtab", swap);
	pack.shdrs[2].sh_type = dwarfpack_32(SHT_STRTAB, swap);
	pack.shdrs[2].sh_offset = dwarfpack_64(offsetof(struct dwarfpack, names), swap);
	pack.shdrs[2].sh_size = dwarfpack_64(sizeof(pack.names), swap);
	for (unsigned i = 0; i < DWARFPACK_SECTIONS && size - at >= 2 && at < size; i++) {
		size_t want = data[at] | (size_t)data[at + 1] << 8;

		at += 2;
		want = want < size - at ? want : size - at;
		dwarfpack_section(&pack, 3 + i, dwarfpack_sections[i], swap);
		pack.shdrs[3 + i].sh_offset = dwarfpack_64(sizeof(pack) + at, swap);
		pack.shdrs[3 + i].sh_size = dwarfpack_64(want, swap);
		at += want;
	}
	memcpy(file, &pack, sizeof(pack));
	if (size)
		memcpy(file + sizeof(pack), data, size);
	if (image_open_fd(memfile_create(file, len), NULL, &image) != 0)
		abort();
	free(file);
	return image;
}

#endif
