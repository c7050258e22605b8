/* SPDX-License-Identifier: MIT */
#include "elfmake.h"

#include <errno.h>

#include "elf/relocate.h"
#include "elf/symtab.h"

enum { TEXT_AT = 0x10000, TEXT_SIZE = 0x100, FRAME_AT = 0x20000, BYTES = 64 };

#define NO_CHANGE UINT64_C(0x5555555555555555)

struct sections {
	unsigned text, frame, info, symtab;
};

static const Elf64_Sym symbols[] = {
	{0},
	{.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION), .st_shndx = 1},
	{.st_name = 1,
	 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	 .st_shndx = 1,
	 .st_value = 0x40,
	 .st_size = 0x20},
	{.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION), .st_shndx = 3}, /* .debug_info */
	{.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), .st_shndx = SHN_ABS, .st_value = 0x777},
};

/* An object as LLVM makes it, with relocations for .eh_frame and .debug_info. */
static struct sections make(struct elfmake *e, uint16_t machine, const Elf64_Rela *rela, size_t nrela, bool of_frame)
{
	static const char strtab[] = "\0function";
	uint8_t bytes[BYTES];
	struct sections s;
	Elf64_Ehdr ehdr;

	memset(bytes, 0x55, sizeof(bytes));
	elfmake_init(e, machine);
	s.text = elfmake_section(
		e, ".text",
		(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TEXT_AT},
		(uint8_t[TEXT_SIZE]){0}, TEXT_SIZE);
	s.frame = elfmake_section(e, ".eh_frame",
				  (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addr = FRAME_AT},
				  bytes, sizeof(bytes));
	s.info = elfmake_section(e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addr = 0x99000}, bytes,
				 sizeof(bytes));
	s.symtab = elfmake_section(
		e, ".symtab",
		(Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_entsize = sizeof(Elf64_Sym), .sh_link = s.info + 2}, symbols,
		sizeof(symbols));
	elfmake_section(e, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, strtab, sizeof(strtab));
	elfmake_section(e, ".rela",
			(Elf64_Shdr){.sh_type = SHT_RELA,
				     .sh_entsize = sizeof(*rela),
				     .sh_link = s.symtab,
				     .sh_info = of_frame ? s.frame : s.info},
			rela, nrela * sizeof(*rela));
	image_destroy(elfmake_image(e));
	memcpy(&ehdr, e->data, sizeof(ehdr));
	ehdr.e_type = ET_REL;
	ehdr.e_entry = 0x1234;
	memcpy(e->data, &ehdr, sizeof(ehdr));
	return s;
}

/* What one relocation at offset 8 makes of the section's bytes. */
static uint64_t relocate_one(uint16_t machine, uint32_t type, uint32_t symbol, int64_t addend, bool of_frame)
{
	Elf64_Rela rela = {.r_offset = 8, .r_info = ELF64_R_INFO((uint64_t)symbol, type), .r_addend = addend};
	struct elfmake e;
	struct image *image;
	struct span span;
	uint64_t value;

	make(&e, machine, &rela, 1, of_frame);
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	span = image_section(image, of_frame ? ".eh_frame" : ".debug_info");
	assert_int_equal(span.len, BYTES);
	assert_int_equal(span.data[7], 0x55);
	assert_int_equal(span.data[16], 0x55);
	memcpy(&value, span.data + 8, sizeof(value));
	image_destroy(image);
	elfmake_deinit(&e);
	return value;
}

/* With what was behind the four bytes. */
static uint64_t low32(uint32_t value)
{
	return (NO_CHANGE & ~UINT64_C(0xffffffff)) | value;
}

static void test_x86_64(void **state)
{
	const uint16_t m = EM_X86_64;

	assert_int_equal(relocate_one(m, R_X86_64_64, 1, 5, false), TEXT_AT + 5);
	assert_int_equal(relocate_one(m, R_X86_64_64, 2, 5, false), TEXT_AT + 0x40 + 5);
	assert_int_equal(relocate_one(m, R_X86_64_32, 1, 5, false), low32(TEXT_AT + 5));
	assert_int_equal(relocate_one(m, R_X86_64_32S, 4, -0x778, false), low32(UINT32_MAX));
	assert_int_equal(relocate_one(m, R_X86_64_PC32, 1, 0, true), low32((uint32_t)(TEXT_AT - (FRAME_AT + 8))));
	assert_int_equal(relocate_one(m, R_X86_64_PC64, 2, 1, true), (uint64_t)TEXT_AT + 0x41 - (FRAME_AT + 8));
	/* What is not loaded is referred to by offset, wherever a copy of it is. */
	assert_int_equal(relocate_one(m, R_X86_64_32, 3, 9, false), low32(9));
	assert_int_equal(relocate_one(m, R_X86_64_64, 4, 0, false), 0x777);
}

static void test_aarch64(void **state)
{
	const uint16_t m = EM_AARCH64;

	assert_int_equal(relocate_one(m, R_AARCH64_ABS64, 1, 5, false), TEXT_AT + 5);
	assert_int_equal(relocate_one(m, R_AARCH64_ABS32, 3, 5, false), low32(5));
	assert_int_equal(relocate_one(m, R_AARCH64_PREL32, 1, 0, true), low32((uint32_t)(TEXT_AT - (FRAME_AT + 8))));
	assert_int_equal(relocate_one(m, R_AARCH64_PREL64, 2, 0, true), (uint64_t)TEXT_AT + 0x40 - (FRAME_AT + 8));
}

static void test_what_cannot_be_relocated(void **state)
{
	const uint16_t m = EM_X86_64;

	assert_int_equal(relocate_one(m, R_X86_64_GOTPCREL, 1, 0, false), NO_CHANGE);
	assert_int_equal(relocate_one(m, R_X86_64_64, 5, 0, false), NO_CHANGE);         /* no such symbol */
	assert_int_equal(relocate_one(m, R_X86_64_32, 4, INT64_MAX, false), NO_CHANGE); /* too large */
	assert_int_equal(relocate_one(m, R_X86_64_32, 4, -0x778, false), NO_CHANGE);
	assert_int_equal(relocate_one(EM_AARCH64, R_X86_64_64, 1, 0, false), NO_CHANGE); /* of the other processor */
}

static void test_outside_of_the_section(void **state)
{
	const Elf64_Rela rela[] = {
		{.r_offset = BYTES, .r_info = ELF64_R_INFO(1UL, R_X86_64_64)},
		{.r_offset = BYTES - 7, .r_info = ELF64_R_INFO(1UL, R_X86_64_64)},
		{.r_offset = UINT64_MAX, .r_info = ELF64_R_INFO(1UL, R_X86_64_64)},
		{.r_offset = BYTES - 8, .r_info = ELF64_R_INFO(1UL, R_X86_64_64)},
	};
	struct elfmake e;
	struct image *image;
	struct span span;
	uint64_t value;

	make(&e, EM_X86_64, rela, 4, false);
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	span = image_section(image, ".debug_info");
	for (size_t i = 0; i < BYTES - 8; i++)
		assert_int_equal(span.data[i], 0x55);
	memcpy(&value, span.data + BYTES - 8, sizeof(value));
	assert_int_equal(value, TEXT_AT);
	image_destroy(image);
	elfmake_deinit(&e);
}

static void test_symbols(void **state)
{
	struct elfmake e;
	struct image *image;
	struct symtab *tab;
	struct symbol symbol;

	make(&e, EM_X86_64, NULL, 0, false);
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	assert_int_equal(image_type(image), ET_DYN);
	assert_int_equal(image_entry(image), 0);
	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	assert_true(symtab_find(tab, TEXT_AT + 0x5f, &symbol));
	assert_int_equal(symbol.start, TEXT_AT + 0x40);
	assert_memory_equal(symbol.name, "function", 8);
	assert_false(symtab_find(tab, 0x40, &symbol));
	assert_false(symtab_find(tab, TEXT_AT + 0x60, &symbol));
	symtab_destroy(tab);
	image_destroy(image);

	/* Once is enough: a second time changes nothing. */
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	assert_true(symtab_find(tab, TEXT_AT + 0x40, &symbol));
	symtab_destroy(tab);
	image_destroy(image);
	elfmake_deinit(&e);
}

static Elf64_Shdr *header_of(struct elfmake *e, unsigned section)
{
	Elf64_Ehdr ehdr;

	memcpy(&ehdr, e->data, sizeof(ehdr));
	return (Elf64_Shdr *)(e->data + ehdr.e_shoff) + section; /* elfmake aligns them */
}

/* Unwind tables that were not loaded get an address from which the code can be reached. */
static void test_unloaded_eh_frame(void **state)
{
	Elf64_Rela rela = {.r_offset = 8, .r_info = ELF64_R_INFO(1UL, R_X86_64_PC32)};
	const uint64_t far = UINT64_C(0x7f0000000000);
	struct elfmake e;
	struct image *image;
	struct sections s = make(&e, EM_X86_64, &rela, 1, true);
	struct span span;
	int32_t value;

	header_of(&e, s.text)->sh_addr = far;
	header_of(&e, s.frame)->sh_addr = 0;
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	span = image_section(image, ".eh_frame");
	memcpy(&value, span.data + 8, sizeof(value));
	assert_int_equal(span.vaddr + 8 + (uint64_t)(int64_t)value, far);
	image_destroy(image);
	elfmake_deinit(&e);
}

static const uint8_t build_id_note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\x12\x34\x56\x78";

static void make_build_id(struct elfmake *e)
{
	struct image *image;

	elfmake_init(e, EM_X86_64);
	elfmake_section(e, ".note.gnu.build-id", (Elf64_Shdr){.sh_type = SHT_NOTE}, build_id_note,
			sizeof(build_id_note) - 1);
	elfmake_section(e, ".gnu_debuglink", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "libc.debug\0\0crc", 16);
	image = elfmake_image(e);
	assert_string_equal(image_build_id(image), "12345678");
	assert_non_null(image_section(image, ".gnu_debuglink").data);
	image_destroy(image);
}

/* An object that claims to be some file must not be taken for it. */
static void test_no_build_id(void **state)
{
	struct elfmake e;
	struct image *image;

	make_build_id(&e);
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	assert_null(image_build_id(image));
	assert_null(image_section(image, ".gnu_debuglink").data);
	image_destroy(image);
	elfmake_deinit(&e);
}

/* What who opens it would count differently: where names are, or how many sections there are. */
static void test_numbers_in_the_first_section(void **state)
{
	struct elfmake e;
	struct image *image;
	Elf64_Ehdr plain, *ehdr;

	make_build_id(&e);
	ehdr = (Elf64_Ehdr *)e.data;
	plain = *ehdr;
	header_of(&e, 0)->sh_link = plain.e_shstrndx;
	header_of(&e, 0)->sh_size = plain.e_shnum;
	ehdr->e_shstrndx = SHN_XINDEX;
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	assert_string_equal(image_build_id(image), "12345678");
	image_destroy(image);
	assert_int_equal(relocate_object(e.data, e.len, NULL), -ENOEXEC);
	*ehdr = plain;
	ehdr->e_shnum = 0;
	assert_int_equal(relocate_object(e.data, e.len, NULL), -ENOEXEC);
	*ehdr = plain;
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	elfmake_deinit(&e);
}

/* Debug info that lies over the names of sections has one renamed by a relocation. */
static void test_names_that_are_relocated(void **state)
{
	Elf64_Rela rela = {.r_info = ELF64_R_INFO(0UL, R_X86_64_64)};
	struct elfmake e;
	struct image *image;
	unsigned info, symtab;

	memcpy(&rela.r_addend, ".note.gn", 8);
	elfmake_init(&e, EM_X86_64);
	rela.r_offset = e.names_len;
	elfmake_section(&e, "some.thing.build-id", (Elf64_Shdr){.sh_type = SHT_NOTE}, build_id_note,
			sizeof(build_id_note) - 1);
	strcpy(e.names + rela.r_offset, "########u.build-id");
	info = elfmake_section(&e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "", 1);
	symtab = elfmake_section(&e, ".symtab", (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_entsize = sizeof(Elf64_Sym)},
				 symbols, sizeof(symbols));
	elfmake_section(&e, ".rela", (Elf64_Shdr){.sh_type = SHT_RELA, .sh_link = symtab, .sh_info = info}, &rela,
			sizeof(rela));
	image_destroy(elfmake_image(&e));
	((Elf64_Ehdr *)e.data)->e_type = ET_REL;
	header_of(&e, info)->sh_offset = header_of(&e, e.nshdrs - 1)->sh_offset;
	header_of(&e, info)->sh_size = header_of(&e, e.nshdrs - 1)->sh_size;
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_string_equal((char *)e.data + header_of(&e, info)->sh_offset + rela.r_offset, ".note.gnu.build-id");
	assert_int_equal(image_open_memory(e.data, e.len, NULL, &image), 0);
	assert_null(image_build_id(image));
	image_destroy(image);
	elfmake_deinit(&e);
}

struct visited {
	unsigned count;
	uint64_t start, end;
};

static bool visit(void *ctx, uint64_t start, uint64_t end)
{
	struct visited *v = ctx;

	v->count++;
	v->start = start;
	v->end = end;
	return v->count < 2;
}

static void test_code(void **state)
{
	struct visited v = {0};
	struct elfmake e;
	struct sections s = make(&e, EM_X86_64, NULL, 0, false);

	assert_true(relocate_visit_code(e.data, e.len, visit, &v));
	assert_int_equal(v.count, 1);
	assert_int_equal(v.start, TEXT_AT);
	assert_int_equal(v.end, TEXT_AT + TEXT_SIZE);

	/* Code that was put nowhere has no names either. */
	header_of(&e, s.text)->sh_addr = 0;
	assert_true(relocate_visit_code(e.data, e.len, visit, &v));
	assert_int_equal(v.count, 1);
	assert_int_equal(relocate_object(e.data, e.len, NULL), 0);
	assert_false(header_of(&e, s.text)->sh_flags & SHF_EXECINSTR);

	header_of(&e, s.text)->sh_flags |= SHF_EXECINSTR;
	header_of(&e, s.text)->sh_addr = UINT64_MAX - 8; /* beyond the end of all addresses */
	assert_true(relocate_visit_code(e.data, e.len, visit, &v));
	assert_int_equal(v.count, 1);
	header_of(&e, s.text)->sh_addr = TEXT_AT;
	assert_false(relocate_visit_code(e.data, e.len, visit, &v));
	elfmake_deinit(&e);
}

static void test_not_an_object(void **state)
{
	static const uint8_t text[128] = "text";
	struct elfmake e;
	struct err err = {0};
	struct visited v = {0};
	uint8_t *copy;

	make(&e, EM_X86_64, NULL, 0, false);
	copy = malloc(e.len);
	memcpy(copy, text, sizeof(text));
	assert_int_equal(relocate_object(copy, sizeof(text), &err), -ENOEXEC);
	for (size_t len = 0; len < e.len; len++) {
		memcpy(copy, e.data, len);
		assert_int_equal(relocate_object(copy, len, &err), -ENOEXEC); /* the headers are at its end */
		assert_true(relocate_visit_code(copy, len, visit, &v));
	}
	memcpy(copy, e.data, e.len);
	((Elf64_Ehdr *)copy)->e_machine = EM_386;
	assert_int_equal(relocate_object(copy, e.len, &err), -ENOEXEC);
	memcpy(copy, e.data, e.len);
	copy[EI_CLASS] = ELFCLASS32;
	assert_int_equal(relocate_object(copy, e.len, &err), -ENOEXEC);
	assert_int_equal(v.count, 0);
	free(copy);
	elfmake_deinit(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64),
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_what_cannot_be_relocated),
		cmocka_unit_test(test_outside_of_the_section),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_unloaded_eh_frame),
		cmocka_unit_test(test_no_build_id),
		cmocka_unit_test(test_numbers_in_the_first_section),
		cmocka_unit_test(test_names_that_are_relocated),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_not_an_object),
	};

	return cmocka_run_group_tests_name("relocate", tests, NULL, NULL);
}
