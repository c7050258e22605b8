/* SPDX-License-Identifier: MIT */
#include "target/memimage.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum { MAX_IMAGE = 64 << 20 };

static bool read_mappings(const struct snapshot *snap, struct memory *memory, size_t first, size_t last,
			  struct mem_copy *copy)
{
	const struct map_entry *maps = snap->maps.data;

	for (size_t i = first; i <= last; i++) {
		struct memory_job job = {
			.address = maps[i].start,
			.len = maps[i].end - maps[i].start,
			.dst = copy->data + (maps[i].start - copy->start),
		};

		if (!(maps[i].perms & MAP_PERM_READ))
			continue;
		memory_copy(memory, &job, 1);
		if (!job.done && i == first)
			return false;
	}
	return true;
}

static bool is_pointer_tag(int64_t tag)
{
	return tag == DT_SYMTAB || tag == DT_STRTAB || tag == DT_HASH || tag == DT_GNU_HASH;
}

/* Pointers that now are addresses in the target become what the file says again. */
static void unrelocate(struct mem_copy *copy, uint64_t at, uint64_t len, uint64_t bias)
{
	Elf64_Dyn dyn;

	if (at > copy->len || len > copy->len - at)
		return;
	for (uint64_t i = at; i + sizeof(dyn) <= at + len; i += sizeof(dyn)) {
		memcpy(&dyn, copy->data + i, sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			return;
		if (!is_pointer_tag(dyn.d_tag) || dyn.d_un.d_ptr < copy->start ||
		    dyn.d_un.d_ptr - copy->start >= copy->len)
			continue;
		dyn.d_un.d_ptr -= bias;
		memcpy(copy->data + i, &dyn, sizeof(dyn));
	}
}

static int clean_headers(struct mem_copy *copy, struct err *err)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr, dynamic = {0};
	uint64_t base = 0;
	bool has_base = false;

	if (copy->len < sizeof(ehdr))
		return err_set(err, ENOEXEC, "not an ELF image");
	memcpy(&ehdr, copy->data, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_phentsize != sizeof(phdr) || ehdr.e_phoff > copy->len ||
	    ehdr.e_phnum > (copy->len - ehdr.e_phoff) / sizeof(phdr))
		return err_set(err, ENOEXEC, "not an ELF image");
	for (unsigned i = 0; i < ehdr.e_phnum; i++) {
		memcpy(&phdr, copy->data + ehdr.e_phoff + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_DYNAMIC)
			dynamic = phdr;
		if (phdr.p_type == PT_LOAD && !has_base) {
			base = phdr.p_vaddr - phdr.p_offset;
			has_base = true;
		}
	}
	ehdr.e_shoff = 0;
	ehdr.e_shnum = 0;
	ehdr.e_shstrndx = SHN_UNDEF;
	memcpy(copy->data, &ehdr, sizeof(ehdr));
	if (dynamic.p_type == PT_DYNAMIC && copy->start != base)
		unrelocate(copy, dynamic.p_vaddr - base, dynamic.p_memsz, copy->start - base);
	return 0;
}

int memimage_copy(struct snapshot *snap, struct memory *memory, size_t first, size_t last, struct err *err,
		  struct mem_copy *out)
{
	struct mem_copy copy = {0};
	int ret;

	copy.start = snap->maps.data[first].start;
	copy.len = snap->maps.data[last].end - copy.start;
	copy.region_end = copy.start + copy.len;
	if (copy.len > MAX_IMAGE)
		return err_set(err, EFBIG, "its image in memory is larger than %d MiB", MAX_IMAGE >> 20);
	copy.data = arena_alloc(snap->arena, copy.len);
	if (!copy.data)
		return err_set(err, ENOMEM, "out of memory");
	if (!read_mappings(snap, memory, first, last, &copy))
		return err_set(err, EIO, "its image in memory cannot be read");
	ret = clean_headers(&copy, err);
	if (ret == 0)
		*out = copy;
	return ret;
}
