/* SPDX-License-Identifier: MIT */
#include "elf/dynsym.h"

#include "elf/symrecords.h"

/* The parts of the dynamic section that matter here; addresses in the file's own terms, 0 when absent. */
struct dynamic {
	uint64_t symtab;
	uint64_t strtab;
	uint64_t strsz;
	uint64_t hash;
	uint64_t gnu_hash;
};

static struct cursor cursor_at(struct image *image, uint64_t vaddr)
{
	struct span bytes = image_bytes_at(image, vaddr);
	struct cursor c = cursor_init(bytes.data, bytes.data ? bytes.len : 0);

	c.big_endian = image_is_big_endian(image);
	return c;
}

static unsigned word_size(const struct image *image)
{
	return image_is_64bit(image) ? 8 : 4;
}

static bool read_dynamic(struct image *image, struct dynamic *out)
{
	const Elf64_Phdr *phdr = image_segment_of(image, PT_DYNAMIC);
	unsigned size = word_size(image);
	struct cursor c;

	*out = (struct dynamic){0};
	if (!phdr)
		return false;
	c = cursor_at(image, phdr->p_vaddr);
	for (;;) {
		int64_t tag = cursor_sint(&c, size);
		uint64_t value = cursor_uint(&c, size);

		if (c.bad || tag == DT_NULL)
			break;
		if (tag == DT_SYMTAB)
			out->symtab = value;
		else if (tag == DT_STRTAB)
			out->strtab = value;
		else if (tag == DT_STRSZ)
			out->strsz = value;
		else if (tag == DT_HASH)
			out->hash = value;
		else if (tag == DT_GNU_HASH)
			out->gnu_hash = value;
	}
	return out->symtab && out->strtab && out->strsz;
}

/* No field has the number of symbols, but the hash tables give the highest index. 0 when neither is there. */
static uint64_t count_by_gnu_hash(struct image *image, uint64_t vaddr)
{
	struct cursor c = cursor_at(image, vaddr);
	uint32_t nbuckets = cursor_u32(&c);
	uint32_t first = cursor_u32(&c);
	uint64_t bloom_bytes = (uint64_t)cursor_u32(&c) * word_size(image);
	uint32_t last = 0;

	cursor_skip(&c, 4); /* bloom shift */
	cursor_skip(&c, bloom_bytes);
	for (uint32_t i = 0; i < nbuckets && !c.bad; i++) {
		uint32_t bucket = cursor_u32(&c);

		if (bucket > last)
			last = bucket;
	}
	if (c.bad || last < first)
		return 0;
	cursor_skip(&c, (uint64_t)(last - first) * 4);
	while (!(cursor_u32(&c) & 1) && !c.bad) /* the lowest bit ends the last bucket's chain */
		last++;
	return c.bad ? 0 : (uint64_t)last + 1;
}

static uint64_t count_symbols(struct image *image, const struct dynamic *dyn)
{
	uint64_t count = 0;

	if (dyn->hash) {
		struct cursor c = cursor_at(image, dyn->hash);
		unsigned size = image_machine(image) == EM_S390 ? word_size(image) : 4;

		cursor_skip(&c, size); /* nbucket */
		count = cursor_uint(&c, size);
	}
	if (!count && dyn->gnu_hash)
		count = count_by_gnu_hash(image, dyn->gnu_hash);
	return count;
}

bool dynsym_read(struct image *image, dynsym_visit visit, void *ctx)
{
	uint64_t budget = symrecords_budget(image), count;
	struct symrecords table = {.wide = image_is_64bit(image), .is_arm = image_machine(image) == EM_ARM, .budget = &budget};
	struct dynamic dyn;
	struct span names;
	Elf64_Sym sym;
	size_t len;

	if (!read_dynamic(image, &dyn))
		return true;
	table.records = cursor_at(image, dyn.symtab);
	names = image_bytes_at(image, dyn.strtab);
	if (names.len < dyn.strsz)
		return true;
	names.len = dyn.strsz;
	table.names = cursor_init(names.data, names.len);
	count = count_symbols(image, &dyn);
	for (uint64_t i = 0; i < count && symrecords_next(&table, &sym); i++) {
		const char *name = symrecords_name(&table, &sym, &len);

		if (name && len < SYMRECORDS_MAX_NAME && !visit(ctx, &sym, name, len))
			return false;
	}
	return true;
}
