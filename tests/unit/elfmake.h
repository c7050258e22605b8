/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_ELFMAKE_H
#define STAKEOUT_TESTS_ELFMAKE_H

#include "cmocka_all.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/image.h"

enum { ELFMAKE_SECTIONS = 16, ELFMAKE_ALIGN = 8 };

/* An ELF file in the making, for what no compiler would write: sections one after the other, then their headers. */
struct elfmake {
	uint8_t *data;
	size_t len;
	Elf64_Shdr shdrs[ELFMAKE_SECTIONS];
	unsigned nshdrs;
	char names[256];
	size_t names_len;
};

static inline void elfmake_append(struct elfmake *e, const void *data, size_t len)
{
	size_t at = (e->len + ELFMAKE_ALIGN - 1) / ELFMAKE_ALIGN * ELFMAKE_ALIGN;

	e->data = realloc(e->data, at + len + ELFMAKE_ALIGN);
	assert_non_null(e->data);
	memset(e->data + e->len, 0, at - e->len);
	if (len)
		memcpy(e->data + at, data, len);
	e->len = at + len;
}

static inline void elfmake_init(struct elfmake *e, uint16_t machine)
{
	const Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	*e = (struct elfmake){.nshdrs = 1, .names_len = 1};
	elfmake_append(e, &ehdr, sizeof(ehdr));
}

/* Adds a section whose other fields are given in `shdr`; its number is returned. */
static inline unsigned elfmake_section(struct elfmake *e, const char *name, Elf64_Shdr shdr, const void *data,
				       size_t len)
{
	assert_true(e->nshdrs < ELFMAKE_SECTIONS && e->names_len + strlen(name) < sizeof(e->names));
	elfmake_append(e, data, len);
	shdr.sh_name = (uint32_t)e->names_len;
	shdr.sh_offset = e->len - len;
	shdr.sh_size = len;
	shdr.sh_addralign = 1;
	strcpy(e->names + e->names_len, name);
	e->names_len += strlen(name) + 1;
	e->shdrs[e->nshdrs] = shdr;
	return e->nshdrs++;
}

/* The image lives as long as the maker. */
static inline struct image *elfmake_image(struct elfmake *e)
{
	struct image *image = NULL;
	Elf64_Ehdr ehdr;

	elfmake_section(e, ".shstrtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, e->names, sizeof(e->names));
	elfmake_append(e, e->shdrs, e->nshdrs * sizeof(e->shdrs[0]));
	memcpy(&ehdr, e->data, sizeof(ehdr));
	ehdr.e_shoff = e->len - e->nshdrs * sizeof(e->shdrs[0]);
	ehdr.e_shnum = (uint16_t)e->nshdrs;
	ehdr.e_shstrndx = (uint16_t)(e->nshdrs - 1);
	memcpy(e->data, &ehdr, sizeof(ehdr));
	assert_int_equal(image_open_memory(e->data, e->len, NULL, &image), 0);
	return image;
}

static inline void elfmake_deinit(struct elfmake *e)
{
	free(e->data);
}

#endif
