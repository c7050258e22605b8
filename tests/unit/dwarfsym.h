/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_DWARFSYM_H
#define STAKEOUT_TESTS_DWARFSYM_H

#include <gelf.h>
#include <string.h>

#include "elf/image.h"

/* The address and the size of a symbol, from libelf; 0 when there is none. */
static inline uint64_t dwarfsym_find(struct image *image, const char *name, uint64_t *size)
{
	Elf *elf = image_elf(image);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &shdr)) {
		if (shdr.sh_type != SHT_SYMTAB)
			continue;
		for (int i = 0; gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++) {
			if (strcmp(elf_strptr(elf, shdr.sh_link, sym.st_name), name) != 0)
				continue;
			*size = sym.st_size;
			return sym.st_value;
		}
	}
	return 0;
}

#endif
