/* SPDX-License-Identifier: MIT */
#include "elf/symrecords.h"

#include <string.h>

enum { MAX_OVERLAP = 8 };

uint64_t symrecords_budget(const struct image *image)
{
	return (uint64_t)image_raw(image).len * MAX_OVERLAP;
}

bool symrecords_charge(struct symrecords *table, uint64_t bytes)
{
	bool enough = bytes <= *table->budget;

	*table->budget = enough ? *table->budget - bytes : 0;
	return enough;
}

static struct span plain_bytes(const struct image *image, size_t section)
{
	const Elf64_Shdr *shdr = image_shdr(image, section);

	return shdr && !(shdr->sh_flags & SHF_COMPRESSED) ? image_shdr_bytes(image, section) : (struct span){0};
}

struct symrecords symrecords_init(const struct image *image, size_t section, uint64_t *budget)
{
	const Elf64_Shdr *shdr = image_shdr(image, section), *strings = shdr ? image_shdr(image, shdr->sh_link) : NULL;
	struct span records = plain_bytes(image, section), names = {0};
	struct symrecords table = {.wide = image_is_64bit(image), .is_arm = image_machine(image) == EM_ARM, .budget = budget};

	if (strings && strings->sh_type == SHT_STRTAB)
		names = plain_bytes(image, shdr->sh_link);
	table.records = cursor_init(records.data, records.len);
	table.names = cursor_init(names.data, names.len);
	table.records.big_endian = table.names.big_endian = image_is_big_endian(image);
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

bool symrecords_next(struct symrecords *table, Elf64_Sym *sym)
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
	if (table->is_arm && ELF64_ST_TYPE(sym->st_info) == STT_FUNC)
		sym->st_value &= ~UINT64_C(1); /* that it is Thumb */
	return !c->bad && symrecords_charge(table, record_size(table));
}

const char *symrecords_name(struct symrecords *table, const Elf64_Sym *sym, size_t *len)
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

bool symrecords_is_named(const struct symrecords *table, const Elf64_Sym *sym, const char *name)
{
	struct cursor c = table->names;
	size_t len = strlen(name) + 1;

	return cursor_seek(&c, sym->st_name) && cursor_left(&c) >= len && memcmp(c.p, name, len) == 0;
}
