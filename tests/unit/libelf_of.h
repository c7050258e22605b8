/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_LIBELF_OF_H
#define STAKEOUT_TESTS_LIBELF_OF_H

#include <gelf.h>
#include <string.h>

#include "elf/image.h"

/* The image as libelf sees it, which is not our reader; for elf_end(), before the image is gone. */
static inline Elf *libelf_of(const struct image *image)
{
	elf_version(EV_CURRENT);
	return elf_memory((char *)image_raw(image).data, image_raw(image).len);
}

/* The address and the size of a symbol of .symtab, from libelf; 0 when there is none. */
static inline uint64_t libelf_symbol(const struct image *image, const char *name, uint64_t *size)
{
	Elf *elf = libelf_of(image);
	Elf_Scn *scn = NULL;
	uint64_t found = 0;
	GElf_Shdr shdr;
	GElf_Sym sym;

	*size = 0;
	while (!found && (scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &shdr)) {
		if (shdr.sh_type != SHT_SYMTAB)
			continue;
		for (int i = 0; !found && gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++) {
			if (strcmp(elf_strptr(elf, shdr.sh_link, sym.st_name), name) != 0)
				continue;
			*size = sym.st_size;
			found = sym.st_value;
		}
	}
	elf_end(elf);
	return found;
}

#endif
