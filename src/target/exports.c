/* SPDX-License-Identifier: MIT */
#include "target/exports.h"

#include <elf.h>
#include <string.h>

#include "elf/exported.h"

enum {
	MAX_HEADERS = 16,  /* program headers that are looked at, */
	MAX_DYNAMIC = 64,  /* and words of the dynamic section */
	MAX_CHAIN = 256,   /* symbols of one bucket */
	WORD_BITS = 64,
};

struct head {
	Elf64_Ehdr file;
	Elf64_Phdr segments[MAX_HEADERS];
};

/* DT_GNU_HASH: these four, a filter, a u32 for each bucket, and the hash of each symbol from `first` on. */
struct table {
	uint32_t nbuckets;
	uint32_t first;
	uint32_t nfilter;
	uint32_t shift;
};

/* Where the dynamic section is, and what addresses in it are above the file's own. 0: there is none. */
static uint64_t find_dynamic(struct mem *mem, uint64_t start, uint64_t *bias)
{
	struct head head;
	uint64_t dynamic = 0;
	bool has_bias = false;

	if (!mem_read_exact(mem, start, &head, sizeof(head)) || memcmp(head.file.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.file.e_ident[EI_CLASS] != ELFCLASS64 || head.file.e_phoff != sizeof(head.file) ||
	    head.file.e_phentsize != sizeof(head.segments[0]))
		return 0;
	for (size_t i = 0; i < head.file.e_phnum && i < MAX_HEADERS; i++) {
		const Elf64_Phdr *segment = &head.segments[i];

		if (segment->p_type == PT_LOAD && !segment->p_offset && !has_bias) {
			*bias = start - segment->p_vaddr;
			has_bias = true;
		}
		if (segment->p_type == PT_DYNAMIC)
			dynamic = segment->p_vaddr;
	}
	return has_bias && dynamic ? *bias + dynamic : 0;
}

/* The C library may have made an address of what the file says. */
static uint64_t find_table(struct mem *mem, uint64_t dynamic, uint64_t bias)
{
	Elf64_Dyn entries[MAX_DYNAMIC];
	ssize_t got = mem->read(mem, dynamic, entries, sizeof(entries));

	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(entries[0]) && entries[i].d_tag != DT_NULL; i++)
		if (entries[i].d_tag == DT_GNU_HASH)
			return entries[i].d_un.d_ptr < bias ? bias + entries[i].d_un.d_ptr : entries[i].d_un.d_ptr;
	return 0;
}

/* Two bits of one word are set for each symbol: most names are ruled out by that. */
static bool passes_filter(struct mem *mem, uint64_t filter, const struct table *table, uint32_t hash)
{
	uint64_t word, bits = UINT64_C(1) << hash % WORD_BITS | UINT64_C(1) << (hash >> table->shift % 32) % WORD_BITS;

	return table->nfilter && mem_read_exact(mem, filter + (uint64_t)(hash / WORD_BITS % table->nfilter) * 8, &word, sizeof(word)) &&
	       (word & bits) == bits;
}

bool exports_may_have(struct mem *mem, uint64_t start, const char *name)
{
	uint64_t bias, dynamic = find_dynamic(mem, start, &bias), at = dynamic ? find_table(mem, dynamic, bias) : 0, buckets;
	uint32_t want = exported_hash(name), symbol, hash = 0;
	struct table table;

	if (!at || !mem_read_exact(mem, at, &table, sizeof(table)) || !table.nbuckets ||
	    !passes_filter(mem, at + sizeof(table), &table, want))
		return false;
	buckets = at + sizeof(table) + (uint64_t)table.nfilter * 8;
	if (!mem_read_exact(mem, buckets + (uint64_t)(want % table.nbuckets) * 4, &symbol, sizeof(symbol)) || symbol < table.first)
		return false;
	for (size_t i = 0; i < MAX_CHAIN && !(hash & 1); i++) { /* the lowest bit ends the bucket */
		uint64_t chain = buckets + ((uint64_t)table.nbuckets + (symbol - table.first) + i) * 4;

		if (!mem_read_exact(mem, chain, &hash, sizeof(hash)))
			return false;
		if ((hash | 1) == (want | 1))
			return true;
	}
	return false;
}
