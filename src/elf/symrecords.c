/* SPDX-License-Identifier: MIT */
#include "elf/symrecords.h"

#include <string.h>

enum { MAX_OVERLAP = 8 };

uint64_t symrecords_budget(Elf *elf)
{
	size_t len = 0;

	elf_rawfile(elf, &len);
	return (uint64_t)len * MAX_OVERLAP;
}

bool symrecords_charge(struct symrecords *table, uint64_t bytes)
{
	bool enough = bytes <= *table->budget;

	*table->budget = enough ? *table->budget - bytes : 0;
	return enough;
}

/* The bytes as they are in the file: libelf would convert, and thus copy, what is not in our byte order. */
static struct cursor section_bytes(Elf_Scn *scn, const GElf_Shdr *shdr, bool big_endian)
{
	bool plain = shdr->sh_type != SHT_NOBITS && !(shdr->sh_flags & SHF_COMPRESSED);
	Elf_Data *data = plain ? elf_rawdata(scn, NULL) : NULL;
	struct cursor c = cursor_init(data ? data->d_buf : NULL, data ? data->d_size : 0);

	c.big_endian = big_endian;
	return c;
}

struct symrecords symrecords_init(Elf *elf, Elf_Scn *scn, uint64_t *budget)
{
	const char *ident = elf_getident(elf, NULL);
	bool big_endian = ident && ident[EI_DATA] == ELFDATA2MSB;
	struct symrecords table = {
		.records = cursor_init(NULL, 0),
		.names = cursor_init(NULL, 0),
		.wide = gelf_getclass(elf) == ELFCLASS64,
		.budget = budget,
	};
	GElf_Shdr shdr;

	if (!gelf_getshdr(scn, &shdr))
		return table;
	table.records = section_bytes(scn, &shdr, big_endian);
	scn = elf_getscn(elf, shdr.sh_link);
	if (scn && gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_STRTAB)
		table.names = section_bytes(scn, &shdr, big_endian);
	return table;
}

static size_t record_size(const struct symrecords *table)
{
	return table->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

bool symrecords_seek(struct symrecords *table, uint64_t index)
{
	size_t size = record_size(table);

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
	return !c->bad && symrecords_charge(table, record_size(table));
}

const char *symrecords_name(struct symrecords *table, const GElf_Sym *sym, size_t *len)
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
	*len = nul ? (size_t)(nul - c.p) : left;
	if (!symrecords_charge(table, *len) || (!nul && left < SYMRECORDS_MAX_NAME))
		return NULL;
	return (const char *)c.p;
}

bool symrecords_is_named(const struct symrecords *table, const GElf_Sym *sym, const char *name)
{
	struct cursor c = table->names;
	size_t len = strlen(name) + 1;

	return cursor_seek(&c, sym->st_name) && cursor_left(&c) >= len && memcmp(c.p, name, len) == 0;
}
