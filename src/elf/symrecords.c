/* SPDX-License-Identifier: MIT */
#include "elf/symrecords.h"

#include <string.h>

/* The bytes as they are in the file: libelf would convert, and thus copy, what is not in our byte order. */
static struct cursor section_bytes(Elf_Scn *scn, const GElf_Shdr *shdr, bool big_endian)
{
	bool plain = shdr->sh_type != SHT_NOBITS && !(shdr->sh_flags & SHF_COMPRESSED);
	Elf_Data *data = plain ? elf_rawdata(scn, NULL) : NULL;
	struct cursor c = cursor_init(data ? data->d_buf : NULL, data ? data->d_size : 0);

	c.big_endian = big_endian;
	return c;
}

struct symrecords symrecords_init(Elf *elf, Elf_Scn *scn)
{
	const char *ident = elf_getident(elf, NULL);
	bool big_endian = ident && ident[EI_DATA] == ELFDATA2MSB;
	struct symrecords table = {.wide = gelf_getclass(elf) == ELFCLASS64};
	GElf_Shdr shdr;

	if (!gelf_getshdr(scn, &shdr))
		return table;
	table.records = section_bytes(scn, &shdr, big_endian);
	scn = elf_getscn(elf, shdr.sh_link);
	if (scn && gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_STRTAB)
		table.names = section_bytes(scn, &shdr, big_endian);
	return table;
}

bool symrecords_seek(struct symrecords *table, uint64_t index)
{
	uint64_t size = table->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

	return cursor_seek(&table->records, index > UINT64_MAX / size ? UINT64_MAX : index * size);
}

bool symrecords_next(struct symrecords *table, GElf_Sym *sym)
{
	struct cursor *c = &table->records;

	sym->st_name = cursor_u32(c);
	if (!table->wide) {
		sym->st_value = cursor_u32(c);
		sym->st_size = cursor_u32(c);
	}
	sym->st_info = cursor_u8(c);
	sym->st_other = cursor_u8(c);
	sym->st_shndx = cursor_u16(c);
	if (table->wide) {
		sym->st_value = cursor_u64(c);
		sym->st_size = cursor_u64(c);
	}
	return !c->bad;
}

const char *symrecords_name(const struct symrecords *table, const GElf_Sym *sym, size_t *len)
{
	struct cursor c = table->names;
	const uint8_t *nul;
	size_t left;

	if (!cursor_seek(&c, sym->st_name))
		return NULL;
	left = cursor_left(&c);
	if (left > SYMRECORDS_MAX_NAME)
		left = SYMRECORDS_MAX_NAME;
	nul = left ? memchr(c.p, 0, left) : NULL;
	if (!nul && left < SYMRECORDS_MAX_NAME)
		return NULL;
	*len = nul ? (size_t)(nul - c.p) : left;
	return (const char *)c.p;
}

bool symrecords_is_named(const struct symrecords *table, const GElf_Sym *sym, const char *name)
{
	struct cursor c = table->names;
	size_t len = strlen(name) + 1;

	return cursor_seek(&c, sym->st_name) && cursor_left(&c) >= len && memcmp(c.p, name, len) == 0;
}
