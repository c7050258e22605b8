/* SPDX-License-Identifier: MIT */
#include "elf/variables.h"

#include "elf/symrecords.h"

static bool covers(const Elf64_Sym *sym, uint64_t vaddr)
{
	return ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_shndx != SHN_UNDEF && vaddr - sym->st_value < sym->st_size;
}

static void look_in(struct symrecords table, uint64_t vaddr, struct variable *best)
{
	Elf64_Sym sym;

	while (symrecords_next(&table, &sym)) {
		struct variable found = {.start = sym.st_value};

		if (!covers(&sym, vaddr))
			continue;
		found.name = symrecords_name(&table, &sym, &found.name_len);
		if (!found.name || !found.name_len)
			continue;
		if (!best->name || found.start > best->start || (found.start == best->start && found.name_len < best->name_len))
			*best = found;
	}
}

bool variable_find(const struct image *image, uint64_t vaddr, struct variable *out)
{
	uint64_t budget = symrecords_budget(image);

	*out = (struct variable){0};
	for (size_t i = 1; i < image_nsections(image); i++) {
		const Elf64_Shdr *shdr = image_shdr(image, i);

		if (shdr->sh_type == SHT_SYMTAB || shdr->sh_type == SHT_DYNSYM)
			look_in(symrecords_init(image, i, &budget), vaddr, out);
	}
	return out->name;
}
