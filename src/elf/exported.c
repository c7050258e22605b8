/* SPDX-License-Identifier: MIT */
#include "elf/exported.h"

#include <string.h>

#include "elf/dynsym.h"
#include "elf/symrecords.h"

uint32_t exported_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool is_named(const struct symrecords *table, const Elf64_Sym *sym, const char *name)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_value && symrecords_is_named(table, sym, name);
}

/* The table's parts: u32 counts, a filter of 64-bit words, a u32 for each bucket, a u32 for each symbol. */
static bool find_by_hash(struct symrecords table, struct span bytes, const char *name, Elf64_Sym *out)
{
	struct cursor c = cursor_init(bytes.data, bytes.len);
	uint32_t nbuckets = cursor_u32(&c), first = cursor_u32(&c), nfilter = cursor_u32(&c);
	uint32_t want = exported_hash(name), hash;
	uint64_t buckets = 16 + (uint64_t)nfilter * 8, i;

	if (!nbuckets || !cursor_seek(&c, buckets + (uint64_t)(want % nbuckets) * 4))
		return false;
	i = cursor_u32(&c);
	if (c.bad || i < first || !cursor_seek(&c, buckets + (uint64_t)nbuckets * 4 + (i - first) * 4))
		return false;
	do {
		hash = cursor_u32(&c); /* the lowest bit ends the bucket */
		if (c.bad || !symrecords_charge(&table, sizeof(hash)))
			return false;
		if ((hash | 1) == (want | 1) && symrecords_seek(&table, i) && symrecords_next(&table, out) &&
		    is_named(&table, out, name))
			return true;
		i++;
	} while (!(hash & 1));
	return false;
}

struct search {
	const char *name;
	bool found;
	Elf64_Sym sym;
};

static bool visit_symbol(void *ctx, const Elf64_Sym *sym, const char *name, size_t len)
{
	struct search *search = ctx;

	if (sym->st_shndx != SHN_UNDEF && sym->st_value && len == strlen(search->name) &&
	    memcmp(name, search->name, len) == 0) {
		search->found = true;
		search->sym = *sym;
	}
	return !search->found;
}

bool exported_find(struct image *image, const char *name, Elf64_Sym *out)
{
	struct search search = {.name = name};
	uint64_t budget = symrecords_budget(image);
	const Elf64_Shdr *shdr;
	bool hashed = false;

	if (!image_is_64bit(image) || image_is_big_endian(image))
		return false;
	for (size_t i = 1; (shdr = image_shdr(image, i)); i++) {
		if (shdr->sh_type != SHT_GNU_HASH)
			continue;
		hashed = true;
		if (find_by_hash(symrecords_init(image, shdr->sh_link, &budget), image_shdr_bytes(image, i), name, out))
			return true;
	}
	if (!hashed)
		dynsym_read(image, visit_symbol, &search);
	if (search.found)
		*out = search.sym;
	return search.found;
}
