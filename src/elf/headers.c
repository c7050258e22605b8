/* SPDX-License-Identifier: MIT */
#include "elf/headers.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

/* More than any file has, unless it was made to exhaust our memory. */
enum {
	MAX_SEGMENTS = 1 << 16,
	MAX_SECTIONS = 1 << 18,
	MAX_NAMES = 16 << 20,
	MAX_NAME = 256,
};

static unsigned word_size(const struct headers *h)
{
	return h->wide ? 8 : 4;
}

bool headers_init(struct headers *h, const void *first, size_t len)
{
	struct cursor c = cursor_init(first, len);
	Elf64_Ehdr *ehdr = &h->ehdr;
	unsigned word;

	*h = (struct headers){0};
	cursor_bytes(&c, ehdr->e_ident, EI_NIDENT);
	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_ident[EI_VERSION] != EV_CURRENT ||
	    (ehdr->e_ident[EI_CLASS] != ELFCLASS32 && ehdr->e_ident[EI_CLASS] != ELFCLASS64) ||
	    (ehdr->e_ident[EI_DATA] != ELFDATA2LSB && ehdr->e_ident[EI_DATA] != ELFDATA2MSB))
		return false;
	h->wide = ehdr->e_ident[EI_CLASS] == ELFCLASS64;
	h->big_endian = c.big_endian = ehdr->e_ident[EI_DATA] == ELFDATA2MSB;
	word = word_size(h);
	ehdr->e_type = cursor_u16(&c);
	ehdr->e_machine = cursor_u16(&c);
	ehdr->e_version = cursor_u32(&c);
	ehdr->e_entry = cursor_uint(&c, word);
	ehdr->e_phoff = cursor_uint(&c, word);
	ehdr->e_shoff = cursor_uint(&c, word);
	ehdr->e_flags = cursor_u32(&c);
	ehdr->e_ehsize = cursor_u16(&c);
	ehdr->e_phentsize = cursor_u16(&c);
	ehdr->e_phnum = cursor_u16(&c);
	ehdr->e_shentsize = cursor_u16(&c);
	ehdr->e_shnum = cursor_u16(&c);
	ehdr->e_shstrndx = cursor_u16(&c);
	return !c.bad;
}

static struct cursor at_offset(const struct headers *h, const void *data, size_t len, uint64_t offset)
{
	struct cursor c = cursor_init(data, len);

	c.big_endian = h->big_endian;
	cursor_seek(&c, offset);
	return c;
}

static bool read_phdr(const struct headers *h, struct cursor *c, Elf64_Phdr *out)
{
	unsigned word = word_size(h);

	out->p_type = cursor_u32(c);
	if (h->wide)
		out->p_flags = cursor_u32(c);
	out->p_offset = cursor_uint(c, word);
	out->p_vaddr = cursor_uint(c, word);
	out->p_paddr = cursor_uint(c, word);
	out->p_filesz = cursor_uint(c, word);
	out->p_memsz = cursor_uint(c, word);
	if (!h->wide)
		out->p_flags = cursor_u32(c);
	out->p_align = cursor_uint(c, word);
	return !c->bad;
}

static bool read_shdr(const struct headers *h, struct cursor *c, Elf64_Shdr *out)
{
	unsigned word = word_size(h);

	out->sh_name = cursor_u32(c);
	out->sh_type = cursor_u32(c);
	out->sh_flags = cursor_uint(c, word);
	out->sh_addr = cursor_uint(c, word);
	out->sh_offset = cursor_uint(c, word);
	out->sh_size = cursor_uint(c, word);
	out->sh_link = cursor_u32(c);
	out->sh_info = cursor_u32(c);
	out->sh_addralign = cursor_uint(c, word);
	out->sh_entsize = cursor_uint(c, word);
	return !c->bad;
}

static size_t at_most(uint64_t count, uint64_t room, uint64_t limit)
{
	if (count > room)
		count = room;
	return (size_t)(count < limit ? count : limit);
}

static bool read_segments(struct headers *h, struct cursor c, uint64_t count)
{
	size_t size = h->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	size_t n = at_most(count, cursor_left(&c) / size, MAX_SEGMENTS);

	if (!n || h->ehdr.e_phentsize != size)
		return true;
	h->phdrs = calloc(n, sizeof(*h->phdrs));
	if (!h->phdrs)
		return false;
	while (h->nphdrs < n && read_phdr(h, &c, &h->phdrs[h->nphdrs]))
		h->nphdrs++;
	return true;
}

static bool read_sections(struct headers *h, struct cursor c, uint64_t count)
{
	size_t size = h->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	size_t n = at_most(count, cursor_left(&c) / size, MAX_SECTIONS);

	if (!n)
		return true;
	h->shdrs = calloc(n, sizeof(*h->shdrs));
	if (!h->shdrs)
		return false;
	while (h->nshdrs < n && read_shdr(h, &c, &h->shdrs[h->nshdrs]))
		h->nshdrs++;
	return true;
}

static bool read_names(struct headers *h, const void *data, size_t len, uint32_t index)
{
	const Elf64_Shdr *shdr = index < h->nshdrs ? &h->shdrs[index] : NULL;
	struct cursor c;

	if (!shdr || index == SHN_UNDEF || shdr->sh_type == SHT_NOBITS)
		return true;
	c = at_offset(h, data, len, shdr->sh_offset);
	if (c.bad || !shdr->sh_size || shdr->sh_size > cursor_left(&c))
		return true;
	h->names_len = at_most(shdr->sh_size, SIZE_MAX, MAX_NAMES);
	h->names = malloc(h->names_len);
	return h->names && cursor_bytes(&c, h->names, h->names_len);
}

/* Numbers that do not fit into the header are in the first section header. */
bool headers_read_tables(struct headers *h, const void *data, size_t len)
{
	struct cursor segments = at_offset(h, data, len, h->ehdr.e_phoff);
	struct cursor sections = at_offset(h, data, len, h->ehdr.e_shoff), c = sections;
	size_t shdr_size = h->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	bool has_sections = h->ehdr.e_shoff && h->ehdr.e_shentsize == shdr_size;
	uint64_t nsegments = h->ehdr.e_phoff ? h->ehdr.e_phnum : 0, nsections = h->ehdr.e_shnum;
	uint32_t names = h->ehdr.e_shstrndx;
	Elf64_Shdr first;

	has_sections = has_sections && read_shdr(h, &c, &first);
	if (has_sections) {
		if (nsegments == PN_XNUM)
			nsegments = first.sh_info;
		if (nsections == 0)
			nsections = first.sh_size;
		if (names == SHN_XINDEX)
			names = first.sh_link;
	}
	return read_segments(h, segments, nsegments) &&
	       (!has_sections || (read_sections(h, sections, nsections) && read_names(h, data, len, names)));
}

void headers_deinit(struct headers *h)
{
	free(h->phdrs);
	free(h->shdrs);
	free(h->names);
	*h = (struct headers){0};
}

const char *headers_name(const struct headers *h, const Elf64_Shdr *shdr)
{
	size_t left = shdr->sh_name < h->names_len ? h->names_len - shdr->sh_name : 0;

	return left && memchr(h->names + shdr->sh_name, 0, left < MAX_NAME ? left : MAX_NAME) ? h->names + shdr->sh_name
											      : NULL;
}
