/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "elf/headers.h"

enum { PHOFF = 64, SHOFF = 192, NAMES = 512, LEN = 600, NSHDR = 4 };

/* Bytes of a file of either form, put there one field after the other. */
struct maker {
	uint8_t file[LEN];
	bool wide, big_endian;
	size_t at;
};

static void put(struct maker *m, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		m->file[m->at + (m->big_endian ? size - 1 - i : i)] = (uint8_t)(value >> 8 * i);
	m->at += size;
}

static void put_word(struct maker *m, uint64_t value)
{
	put(m, value, m->wide ? 8 : 4);
}

static void put_ehdr(struct maker *m, const Elf64_Ehdr *ehdr)
{
	const uint8_t ident[EI_NIDENT] = {ELFMAG0,
					  ELFMAG1,
					  ELFMAG2,
					  ELFMAG3,
					  m->wide ? ELFCLASS64 : ELFCLASS32,
					  m->big_endian ? ELFDATA2MSB : ELFDATA2LSB,
					  EV_CURRENT};

	memcpy(m->file, ident, sizeof(ident));
	m->at = EI_NIDENT;
	put(m, ehdr->e_type, 2);
	put(m, ehdr->e_machine, 2);
	put(m, EV_CURRENT, 4);
	put_word(m, ehdr->e_entry);
	put_word(m, ehdr->e_phoff);
	put_word(m, ehdr->e_shoff);
	put(m, 0, 4);
	put(m, m->wide ? 64 : 52, 2);
	put(m, ehdr->e_phentsize, 2);
	put(m, ehdr->e_phnum, 2);
	put(m, ehdr->e_shentsize, 2);
	put(m, ehdr->e_shnum, 2);
	put(m, ehdr->e_shstrndx, 2);
}

static void put_phdr(struct maker *m, const Elf64_Phdr *phdr)
{
	put(m, phdr->p_type, 4);
	if (m->wide)
		put(m, phdr->p_flags, 4);
	put_word(m, phdr->p_offset);
	put_word(m, phdr->p_vaddr);
	put_word(m, phdr->p_paddr);
	put_word(m, phdr->p_filesz);
	put_word(m, phdr->p_memsz);
	if (!m->wide)
		put(m, phdr->p_flags, 4);
	put_word(m, phdr->p_align);
}

static void put_shdr(struct maker *m, const Elf64_Shdr *shdr)
{
	put(m, shdr->sh_name, 4);
	put(m, shdr->sh_type, 4);
	put_word(m, shdr->sh_flags);
	put_word(m, shdr->sh_addr);
	put_word(m, shdr->sh_offset);
	put_word(m, shdr->sh_size);
	put(m, shdr->sh_link, 4);
	put(m, shdr->sh_info, 4);
	put_word(m, shdr->sh_addralign);
	put_word(m, shdr->sh_entsize);
}

static const Elf64_Phdr segments[] = {
	{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 1, .p_vaddr = 0x1234, .p_paddr = 2, .p_filesz = 0xf0, .p_memsz = 0xf00, .p_align = 0x1000},
	{.p_type = PT_DYNAMIC, .p_flags = PF_W, .p_offset = 0x77, .p_vaddr = 0xfffffff0},
};

static const char names[] = "\0.text\0.shstrtab\0unended";

static Elf64_Ehdr header_for(const struct maker *m)
{
	return (Elf64_Ehdr){
		.e_type = ET_DYN,
		.e_machine = EM_PPC64,
		.e_entry = 0x4321,
		.e_phoff = PHOFF,
		.e_phentsize = m->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr),
		.e_phnum = 2,
		.e_shoff = SHOFF,
		.e_shentsize = m->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr),
		.e_shnum = NSHDR,
		.e_shstrndx = 2,
	};
}

static void make(struct maker *m, const Elf64_Ehdr *ehdr, const Elf64_Shdr *first)
{
	const Elf64_Shdr text = {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = 0x80000000, .sh_offset = 9, .sh_size = 10, .sh_link = 11, .sh_info = 12, .sh_addralign = 16, .sh_entsize = 3};
	const Elf64_Shdr shstrtab = {.sh_name = 7, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof(names) - 1};
	const Elf64_Shdr last = {.sh_name = 17};

	put_ehdr(m, ehdr);
	m->at = PHOFF;
	put_phdr(m, &segments[0]);
	put_phdr(m, &segments[1]);
	m->at = SHOFF;
	put_shdr(m, first);
	put_shdr(m, &text);
	put_shdr(m, &shstrtab);
	put_shdr(m, &last);
	memcpy(m->file + NAMES, names, sizeof(names) - 1);
}

static void read_made(struct maker *m, const Elf64_Ehdr *ehdr, const Elf64_Shdr *first, struct headers *h)
{
	make(m, ehdr, first);
	assert_true(headers_init(h, m->file, sizeof(m->file)));
	assert_true(headers_read_tables(h, m->file, sizeof(m->file)));
}

static void check_all(const struct headers *h)
{
	assert_int_equal(h->nphdrs, 2);
	assert_memory_equal(h->phdrs, segments, sizeof(segments));
	assert_int_equal(h->nshdrs, NSHDR);
	assert_int_equal(h->shdrs[1].sh_addr, 0x80000000);
	assert_int_equal(h->shdrs[1].sh_entsize, 3);
	assert_int_equal(h->shdrs[1].sh_info, 12);
	assert_string_equal(headers_name(h, &h->shdrs[0]), "");
	assert_string_equal(headers_name(h, &h->shdrs[1]), ".text");
	assert_string_equal(headers_name(h, &h->shdrs[2]), ".shstrtab");
	assert_null(headers_name(h, &h->shdrs[3])); /* no end */
	assert_null(headers_name(h, &(Elf64_Shdr){.sh_name = UINT32_MAX}));
}

static void test_both_sizes_and_orders(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct maker m = {.wide = i & 1, .big_endian = i & 2};
		Elf64_Ehdr ehdr = header_for(&m);
		struct headers h;

		read_made(&m, &ehdr, &(Elf64_Shdr){0}, &h);
		assert_int_equal(h.wide, m.wide);
		assert_int_equal(h.big_endian, m.big_endian);
		assert_int_equal(h.ehdr.e_type, ET_DYN);
		assert_int_equal(h.ehdr.e_machine, EM_PPC64);
		assert_int_equal(h.ehdr.e_entry, 0x4321);
		check_all(&h);
		headers_deinit(&h);
		headers_deinit(&h);
	}
}

/* More than fit into the header's own fields. */
static void test_numbers_in_the_first_section(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct maker m = {.wide = i & 1, .big_endian = i & 2};
		const Elf64_Shdr first = {.sh_size = NSHDR, .sh_link = 2, .sh_info = 2};
		Elf64_Ehdr ehdr = header_for(&m);
		struct headers h;

		ehdr.e_phnum = PN_XNUM;
		ehdr.e_shnum = 0;
		ehdr.e_shstrndx = SHN_XINDEX;
		read_made(&m, &ehdr, &first, &h);
		check_all(&h);
		headers_deinit(&h);
	}
}

/* What the file has no room for is not there, whatever it says. */
static void test_absurd_numbers(void **state)
{
	struct maker m = {.wide = true};
	const Elf64_Ehdr good = header_for(&m);
	Elf64_Shdr first = {.sh_size = UINT64_MAX, .sh_link = UINT32_MAX, .sh_info = UINT32_MAX};
	Elf64_Ehdr ehdr = good;
	struct headers h;

	ehdr.e_phnum = PN_XNUM;
	ehdr.e_shnum = 0;
	ehdr.e_shstrndx = SHN_XINDEX;
	read_made(&m, &ehdr, &first, &h);
	assert_int_equal(h.nphdrs, (LEN - PHOFF) / sizeof(Elf64_Phdr));
	assert_int_equal(h.nshdrs, (LEN - SHOFF) / sizeof(Elf64_Shdr));
	assert_null(headers_name(&h, &h.shdrs[1]));
	headers_deinit(&h);

	for (unsigned i = 0; i < 8; i++) {
		ehdr = good;
		ehdr.e_phoff = i == 0 ? UINT64_MAX : i == 1 ? LEN : i == 2 ? LEN - 1 : good.e_phoff;
		ehdr.e_phentsize = i == 3 ? 0 : good.e_phentsize;
		ehdr.e_shoff = i == 4 ? UINT64_MAX : i == 5 ? LEN - 63 : i == 6 ? 0 : good.e_shoff;
		ehdr.e_shentsize = i == 7 ? 63 : good.e_shentsize;
		read_made(&m, &ehdr, &(Elf64_Shdr){0}, &h);
		assert_int_equal(h.nphdrs, i < 4 ? 0 : 2);
		assert_int_equal(h.nshdrs, i < 4 ? NSHDR : 0);
		headers_deinit(&h);
	}
}

/* Names that are not in the file, or not at all. */
static void test_no_names(void **state)
{
	static const Elf64_Shdr bad[] = {
		{.sh_type = SHT_NOBITS, .sh_offset = NAMES, .sh_size = 10},
		{.sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = LEN},
		{.sh_type = SHT_STRTAB, .sh_offset = UINT64_MAX, .sh_size = 10},
		{.sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = UINT64_MAX},
		{.sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = 0},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct maker m = {.wide = true};
		const Elf64_Ehdr ehdr = header_for(&m);
		struct headers h;

		make(&m, &ehdr, &(Elf64_Shdr){0});
		m.at = SHOFF + 2 * sizeof(Elf64_Shdr);
		put_shdr(&m, &bad[i]);
		assert_true(headers_init(&h, m.file, LEN) && headers_read_tables(&h, m.file, LEN));
		assert_int_equal(h.nshdrs, NSHDR);
		assert_null(headers_name(&h, &h.shdrs[1]));
		headers_deinit(&h);
	}
}

static void test_no_elf(void **state)
{
	struct maker m = {.wide = true};
	const Elf64_Ehdr ehdr = header_for(&m);
	struct headers h;

	make(&m, &ehdr, &(Elf64_Shdr){0});
	for (size_t len = 0; len < sizeof(Elf64_Ehdr); len++)
		assert_false(headers_init(&h, m.file, len));
	for (size_t i = 0; i <= EI_VERSION; i++) {
		uint8_t before = m.file[i];

		for (unsigned value = 0; value < 256; value++) {
			m.file[i] = (uint8_t)value;
			if (headers_init(&h, m.file, LEN))
				assert_true(value == before || i == EI_CLASS || i == EI_DATA);
		}
		m.file[i] = before;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sizes_and_orders), cmocka_unit_test(test_numbers_in_the_first_section),
		cmocka_unit_test(test_absurd_numbers),        cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_no_elf),
	};

	return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
