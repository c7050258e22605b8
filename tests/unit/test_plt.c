/* SPDX-License-Identifier: MIT */
/* Single stubs; test_symtab.c has whole tables as linkers write them. */
#include "elfmake.h"

#include "elf/plt.h"

enum { PLT_AT = 0x1000, SEC_AT = 0x2000, GOT_PLT_AT = 0x3000, SLOTS_AT = 0x8000, NAMES = 4, MAX_FOUND = 8 };

static const char strings[] = "\0first\0second\0third";
static const uint32_t string_at[NAMES] = {0, 1, 7, 14}; /* the first symbol has no name */

struct found {
	uint64_t start, end;
	char name[16];
};

struct visits {
	struct found found[MAX_FOUND];
	size_t n, stop_at;
};

static bool note(void *ctx, uint64_t start, uint64_t end, const char *name)
{
	struct visits *v = ctx;

	assert_true(v->n < MAX_FOUND);
	v->found[v->n] = (struct found){.start = start, .end = end};
	strncpy(v->found[v->n].name, name, sizeof(v->found[v->n].name) - 1);
	return ++v->n != v->stop_at;
}

/* A file with one section of stubs, whose slots are SLOTS_AT + 8 * i for symbol i. */
struct plt {
	uint16_t machine;
	const char *section;
	uint64_t at;
	const void *code;
	size_t len;
	uint32_t type;            /* of the relocations */
	uint32_t first, nsymbols; /* which symbols they name */
};

static struct visits read_plt(const struct plt *plt, size_t stop_at, bool *result)
{
	Elf64_Sym symbols[NAMES] = {0};
	Elf64_Rela relocations[NAMES + 1] = {0};
	struct visits visits = {.stop_at = stop_at};
	struct image *image;
	struct elfmake e;
	unsigned strtab, symtab;

	for (unsigned i = 0; i < NAMES; i++) {
		symbols[i].st_name = string_at[i];
		relocations[i] = (Elf64_Rela){.r_offset = SLOTS_AT + 8 * i,
					      .r_info = ELF64_R_INFO((uint64_t)plt->first + i, plt->type)};
	}
	relocations[NAMES] = (Elf64_Rela){.r_offset = SLOTS_AT + 8 * NAMES, .r_info = ELF64_R_INFO(1, 0)};
	elfmake_init(&e, plt->machine);
	strtab = elfmake_section(&e, ".dynstr", (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_flags = SHF_ALLOC}, strings,
				 sizeof(strings));
	symtab = elfmake_section(&e, ".dynsym",
				 (Elf64_Shdr){.sh_type = SHT_DYNSYM,
					      .sh_flags = SHF_ALLOC,
					      .sh_link = strtab,
					      .sh_entsize = sizeof(Elf64_Sym)},
				 symbols, sizeof(symbols));
	elfmake_section(&e, ".rela.plt",
			(Elf64_Shdr){.sh_type = SHT_RELA,
				     .sh_flags = SHF_ALLOC,
				     .sh_link = symtab,
				     .sh_entsize = sizeof(Elf64_Rela)},
			relocations, sizeof(relocations));
	elfmake_section(
		&e, plt->section,
		(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = plt->at},
		plt->code, plt->len);
	image = elfmake_image(&e);
	*result = plt_read(image, note, &visits);
	image_destroy(image);
	elfmake_deinit(&e);
	return visits;
}

static struct visits read_all(const struct plt *plt)
{
	bool result;
	struct visits visits = read_plt(plt, 0, &result);

	assert_true(result);
	return visits;
}

static void expect(const struct visits *v, size_t i, uint64_t start, uint64_t end, const char *name)
{
	assert_true(i < v->n);
	assert_int_equal(v->found[i].start, start);
	assert_int_equal(v->found[i].end, end);
	assert_string_equal(v->found[i].name, name);
}

/* jmp *slot(%rip) at `at`, after `prefix` bytes of it, with nops up to 16. */
static void put_x86(uint8_t *code, uint64_t at, const char *prefix, size_t prefix_len, unsigned symbol)
{
	int32_t distance = (int32_t)(SLOTS_AT + 8 * symbol - (at + prefix_len + 6));

	memset(code, 0x90, 16);
	memcpy(code, prefix, prefix_len);
	memcpy(code + prefix_len, "\xff\x25", 2);
	memcpy(code + prefix_len + 2, &distance, 4);
}

static void test_x86_64_stubs(void **state)
{
	uint8_t code[48];
	struct plt plt = {.machine = EM_X86_64,
			  .section = ".plt",
			  .at = PLT_AT,
			  .code = code,
			  .len = sizeof(code),
			  .type = R_X86_64_JUMP_SLOT};
	struct visits v;

	put_x86(code, PLT_AT, "", 0, 1);
	put_x86(code + 16, PLT_AT + 16, "\xf3\x0f\x1e\xfa", 4, 2);
	put_x86(code + 32, PLT_AT + 32, "\xf3\x0f\x1e\xfa\xf2", 5, 3); /* endbr64; bnd jmp */
	v = read_all(&plt);
	assert_int_equal(v.n, 3);
	expect(&v, 0, PLT_AT, PLT_AT + 16, "first");
	expect(&v, 1, PLT_AT + 16, PLT_AT + 32, "second");
	expect(&v, 2, PLT_AT + 32, PLT_AT + 48, "third");

	plt.section = ".plt.sec";
	plt.at = SEC_AT;
	put_x86(code, SEC_AT, "\xf2", 1, 2);
	plt.len = 16;
	v = read_all(&plt);
	assert_int_equal(v.n, 1);
	expect(&v, 0, SEC_AT, SEC_AT + 16, "second");
	/* eight bytes each, relocated by GLOB_DAT */
	plt = (struct plt){.machine = EM_X86_64,
			   .section = ".plt.got",
			   .at = GOT_PLT_AT,
			   .code = code,
			   .len = 16,
			   .type = R_X86_64_GLOB_DAT};
	put_x86(code, GOT_PLT_AT, "", 0, 3);
	put_x86(code + 8, GOT_PLT_AT + 8, "", 0, 1);
	v = read_all(&plt);
	assert_int_equal(v.n, 2);
	expect(&v, 0, GOT_PLT_AT, GOT_PLT_AT + 16, "third");
	expect(&v, 1, GOT_PLT_AT + 8, GOT_PLT_AT + 24, "first");
}

static void test_what_is_no_stub(void **state)
{
	uint8_t code[64];
	struct plt plt = {.machine = EM_X86_64,
			  .section = ".plt",
			  .at = PLT_AT,
			  .code = code,
			  .len = sizeof(code),
			  .type = R_X86_64_JUMP_SLOT};

	put_x86(code, PLT_AT, "", 0, 0);                   /* the symbol has no name */
	put_x86(code + 16, PLT_AT + 16, "", 0, NAMES);     /* relocated otherwise */
	put_x86(code + 32, PLT_AT + 32, "", 0, NAMES + 1); /* not at all */
	memset(code + 48, 0xff, 16);
	assert_int_equal(read_all(&plt).n, 0);
	put_x86(code, PLT_AT, "", 0, 1);
	assert_int_equal(read_all(&plt).n, 1);
	plt.len = 5; /* cut in the jump */
	assert_int_equal(read_all(&plt).n, 0);
	plt.len = 0;
	assert_int_equal(read_all(&plt).n, 0);
	plt.len = sizeof(code);
	plt.section = ".text";
	assert_int_equal(read_all(&plt).n, 0);
	plt.section = ".plt";
	plt.type = R_X86_64_RELATIVE;
	assert_int_equal(read_all(&plt).n, 0);
	plt.type = R_X86_64_JUMP_SLOT;
	plt.first = UINT32_MAX - NAMES; /* symbols that are not there */
	assert_int_equal(read_all(&plt).n, 0);
	plt.first = 0;
	plt.machine = EM_386; /* no decoder */
	assert_int_equal(read_all(&plt).n, 0);
}

/* adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17 */
static void put_aarch64(uint32_t *code, uint64_t at, unsigned symbol)
{
	uint64_t slot = SLOTS_AT + 8 * symbol;
	uint32_t pages = (uint32_t)((slot >> 12) - (at >> 12));

	code[0] = 0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5;
	code[1] = 0xf9400211 | (uint32_t)(slot % 4096 / 8) << 10;
	code[2] = 0x91000210 | (uint32_t)(slot % 4096) << 10;
	code[3] = 0xd61f0220;
}

static void test_aarch64_stubs(void **state)
{
	uint32_t code[14] = {0xd503245f};
	struct plt plt = {.machine = EM_AARCH64,
			  .section = ".plt",
			  .at = PLT_AT,
			  .code = code,
			  .len = sizeof(code),
			  .type = R_AARCH64_JUMP_SLOT};
	struct visits v;

	put_aarch64(code + 1, PLT_AT + 4, 1); /* after bti c */
	put_aarch64(code + 6, PLT_AT + 24, 3);
	v = read_all(&plt);
	/* The one with bti is found twice, with and without; the longer comes first. */
	assert_int_equal(v.n, 3);
	expect(&v, 0, PLT_AT, PLT_AT + 20, "first");
	expect(&v, 1, PLT_AT + 4, PLT_AT + 20, "first");
	expect(&v, 2, PLT_AT + 24, PLT_AT + 40, "third");

	/* slots before the code: a negative distance */
	plt.at = SLOTS_AT + 0x5000;
	code[0] = 0;
	put_aarch64(code + 1, plt.at + 4, 2);
	put_aarch64(code + 6, plt.at + 24, 0); /* no name */
	v = read_all(&plt);
	assert_int_equal(v.n, 1);
	expect(&v, 0, plt.at + 4, plt.at + 20, "second");
	plt.len = 4; /* cut after the first instruction */
	assert_int_equal(read_all(&plt).n, 0);
}

static void test_visitor_stops(void **state)
{
	uint8_t code[32];
	struct plt plt = {.machine = EM_X86_64,
			  .section = ".plt",
			  .at = PLT_AT,
			  .code = code,
			  .len = sizeof(code),
			  .type = R_X86_64_JUMP_SLOT};
	bool result;

	put_x86(code, PLT_AT, "", 0, 1);
	put_x86(code + 16, PLT_AT + 16, "", 0, 2);
	assert_int_equal(read_plt(&plt, 1, &result).n, 1);
	assert_false(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64_stubs),
		cmocka_unit_test(test_what_is_no_stub),
		cmocka_unit_test(test_aarch64_stubs),
		cmocka_unit_test(test_visitor_stops),
	};

	return cmocka_run_group_tests_name("plt", tests, NULL, NULL);
}
