/* SPDX-License-Identifier: MIT */
#include "elfmake.h"
#include "libelf_of.h"
#include "scratch.h"

#include <elf.h>
#include <lzma.h>

#include "elf/symrecords.h"
#include "elf/symtab.h"

/* Offsets from the start of .text are in the comments; only directives that every architecture's assembler knows. */
static const char assembly[] = "	.text\n"
			       "	.balign 4096\n"
			       "	.globl text_start\n"
			       "text_start:\n"
			       "	.macro function name, binding, size, type=%function\n"
			       "	\\binding \\name\n"
			       "	.type \\name, \\type\n"
			       "	.size \\name, \\size\n"
			       "\\name:\n"
			       "	.endm\n"
			       "	.skip 0x100\n"
			       "	function __alias, .globl, 0x40\n" /* 0x100: five names */
			       "	function alias_weak, .weak, 0x40\n"
			       "	function alias_global, .globl, 0x40\n"
			       "	function _a, .globl, 0x40\n"
			       "	function local, .local, 0x40\n"
			       "	.skip 0x40\n"
			       "	.skip 0xc0\n"                    /* 0x140: a hole */
			       "	function outer, .globl, 0x100\n" /* 0x200 */
			       "	.skip 0x40\n"
			       "	function inner, .globl, 0x20\n" /* 0x240 */
			       "	.skip 0x20\n"
			       "label_in_outer:\n" /* 0x260 */
			       "	.skip 0xa0\n"
			       "	function unsized, .globl, 0\n" /* 0x300 */
			       "	.skip 0x40\n"
			       "$x:\n" /* a mapping symbol */
			       "$d.1:\n"
			       "	.skip 0x40\n"
			       "	function resolver, .globl, 0x10, %gnu_indirect_function\n" /* 0x380 */
			       "	.skip 0x10\n"
			       "	function object, .globl, 0x10, %object\n" /* 0x390 */
			       "	.skip 0x10\n"
			       "	function versioned_impl, .globl, 0x10\n" /* 0x3a0 */
			       "	.symver versioned_impl, versioned@@V1, remove\n"
			       "	.skip 0x10\n";

static struct scratch make_object(void)
{
	struct scratch s;

	scratch_init(&s);
	scratch_text(&s, "t.s", assembly);
	scratch_text(&s, "t.map", "V1 { global: *; };\n");
	scratch_run(&s, "cc -shared -nostdlib -Wl,--version-script=t.map -o t.so t.s");
	return s;
}

static void expect(const struct symtab *tab, uint64_t vaddr, const char *name)
{
	struct symbol symbol;
	bool found = symtab_find(tab, vaddr, &symbol);

	if (!name) {
		assert_false(found);
		return;
	}
	assert_true(found);
	assert_int_equal(symbol.name_len, strlen(name));
	assert_memory_equal(symbol.name, name, symbol.name_len);
	assert_true(vaddr >= symbol.start && vaddr < symbol.end);
}

static uint64_t text_start(struct image *image)
{
	return image_section(image, ".text").vaddr;
}

static void test_choice_and_extent(void **state)
{
	struct scratch s = make_object();
	struct image *image = scratch_image(&s, "t.so");
	uint64_t base = text_start(image);
	struct symtab *tab;

	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	assert_true(symtab_has_locals(tab));
	expect(tab, base + 0x100, "alias_global");
	expect(tab, base + 0x13f, "alias_global");
	expect(tab, base + 0x140, NULL);
	expect(tab, base + 0x200, "outer");
	expect(tab, base + 0x245, "inner");
	expect(tab, base + 0x261, "outer"); /* a sized symbol beats a label */
	expect(tab, base + 0x2ff, "outer");
	expect(tab, base + 0x301, "unsized");
	expect(tab, base + 0x350, "unsized"); /* mapping symbols are not there */
	expect(tab, base + 0x381, "resolver");
	expect(tab, base + 0x391, NULL); /* data */
	expect(tab, base + 0x3a1, "versioned");
	expect(tab, base + 0x3b0, NULL);
	expect(tab, 0, NULL);
	expect(tab, UINT64_MAX, NULL);
	symtab_destroy(tab);
	image_destroy(image);
	scratch_deinit(&s);
}

static void check_exported_only(struct scratch *s, const char *file)
{
	struct image *image = scratch_image(s, file);
	struct image *whole = scratch_image(s, "t.so");
	uint64_t base = text_start(whole);
	struct symtab *tab;

	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	assert_false(symtab_has_locals(tab));
	expect(tab, base + 0x100, "alias_global");
	expect(tab, base + 0x245, "inner");
	expect(tab, base + 0x381, "resolver");
	expect(tab, base + 0x3a1, "versioned");
	symtab_destroy(tab);
	image_destroy(image);
	image_destroy(whole);
}

static void test_stripped(void **state)
{
	struct scratch s = make_object();

	scratch_run(&s, "strip -o stripped.so t.so");
	check_exported_only(&s, "stripped.so");
	scratch_deinit(&s);
}

static void check_without_sections(const char *cc, const char *hash_style)
{
	struct scratch s = make_object();
	size_t len;
	char *data;

	scratch_run(&s, "%s -shared -nostdlib -Wl,--hash-style=%s -Wl,--version-script=t.map -o t.so t.s", cc,
		    hash_style);
	data = scratch_read(&s, "t.so", &len);
	if (data[EI_CLASS] == ELFCLASS64) {
		memset(data + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
		memset(data + offsetof(Elf64_Ehdr, e_shnum), 0, 2 * sizeof(Elf64_Half)); /* and e_shstrndx */
	} else {
		memset(data + offsetof(Elf32_Ehdr, e_shoff), 0, sizeof(Elf32_Off));
		memset(data + offsetof(Elf32_Ehdr, e_shnum), 0, 2 * sizeof(Elf32_Half));
	}
	scratch_write(&s, "bare.so", data, len);
	free(data);
	check_exported_only(&s, "bare.so");
	scratch_deinit(&s);
}

static void test_without_section_headers(void **state)
{
	check_without_sections("cc", "gnu");
	check_without_sections("cc", "sysv");
}

static void test_32bit_without_section_headers(void **state)
{
	scratch_needs("i686-linux-gnu-gcc");
	check_without_sections("i686-linux-gnu-gcc", "gnu");
	check_without_sections("i686-linux-gnu-gcc", "sysv");
}

static void test_32bit_big_endian_without_section_headers(void **state)
{
	scratch_needs("powerpc-linux-gnu-gcc");
	check_without_sections("powerpc-linux-gnu-gcc", "gnu");
	check_without_sections("powerpc-linux-gnu-gcc", "sysv");
}

static void test_separate_debug_file(void **state)
{
	struct scratch s = make_object();
	struct image *image, *debug;
	struct symtab *tab;
	uint64_t base;

	scratch_run(&s, "objcopy --only-keep-debug t.so t.debug && strip -o stripped.so t.so");
	image = scratch_image(&s, "stripped.so");
	debug = scratch_image(&s, "t.debug");
	base = text_start(image);
	assert_int_equal(symtab_create(image, debug, NULL, &tab), 0);
	assert_true(symtab_has_locals(tab));
	expect(tab, base + 0x301, "unsized");
	expect(tab, base + 0x3a1, "versioned");
	symtab_destroy(tab);
	image_destroy(debug);
	image_destroy(image);
	scratch_deinit(&s);
}

/* As distributions do it: the symbols that .dynsym lacks, xz-compressed, in .gnu_debugdata. */
static void make_minidebug(struct scratch *s)
{
	size_t len, packed_len = 0;
	uint8_t packed[65536];
	char *data;

	scratch_text(s, "m.c",
		     "static __attribute__((noinline, used)) int hidden_one(int x) { return x * 7; }\n"
		     "int shown(int x) { return hidden_one(x) + 1; }\n");
	scratch_run(s, "cc -O1 -shared -fPIC -o m.so m.c");
	scratch_run(s, "objcopy --only-keep-debug m.so m.debug && strip --strip-debug m.debug");
	data = scratch_read(s, "m.debug", &len);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, (uint8_t *)data, len, packed, &packed_len,
						 sizeof(packed)),
			 LZMA_OK);
	free(data);
	scratch_write(s, "m.xz", packed, packed_len);
	scratch_run(s, "strip -o m-plain.so m.so && objcopy --add-section .gnu_debugdata=m.xz m-plain.so m-mini.so");
	scratch_write(s, "m.xz", packed, packed_len / 2);
	scratch_run(s, "objcopy --add-section .gnu_debugdata=m.xz m-plain.so m-damaged.so");
}

static uint64_t value_of(struct scratch *s, const char *file, const char *name)
{
	struct image *image = scratch_image(s, file);
	uint64_t size, value = libelf_symbol(image, name, &size);

	image_destroy(image);
	return value;
}

static void test_minidebug(void **state)
{
	struct scratch s;
	struct image *image;
	struct symtab *tab;
	uint64_t hidden, shown;

	scratch_init(&s);
	make_minidebug(&s);
	hidden = value_of(&s, "m.so", "hidden_one");
	shown = value_of(&s, "m.so", "shown");
	image = scratch_image(&s, "m-mini.so");
	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	expect(tab, hidden, "hidden_one");
	expect(tab, shown, "shown");
	symtab_destroy(tab);
	image_destroy(image);

	image = scratch_image(&s, "m-damaged.so");
	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	expect(tab, hidden, NULL);
	expect(tab, shown, "shown");
	symtab_destroy(tab);
	image_destroy(image);
	scratch_deinit(&s);
}

/* Every stub of every section with stubs has the name of what it jumps to. */
static void check_plt(const char *cc, const char *flags)
{
	struct scratch s;
	struct image *image;
	struct symtab *tab;
	struct symbol symbol;
	size_t puts_stubs = 0;

	scratch_init(&s);
	scratch_text(&s, "p.c",
		     "int puts(const char *); int getpid(void); int getppid(void);\n"
		     "int (*keep(void))(void) { return getpid; }\n"
		     "int f(void) { return puts(\"x\") + getpid() + getppid(); }\n");
	scratch_run(&s, "%s -O1 -shared -fPIC -nostdlib %s -o p.so p.c", cc, flags);
	image = scratch_image(&s, "p.so");
	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	for (uint64_t at = text_start(image) - 0x200; at < text_start(image); at++) {
		const char *section = image_section_name_at(image, at);

		if (!section || strncmp(section, ".plt", 4) != 0 || !symtab_find(tab, at, &symbol))
			continue;
		assert_int_equal(symbol.source, SYMBOL_PLT);
		puts_stubs += symbol.name_len == 4 && memcmp(symbol.name, "puts", 4) == 0;
	}
	assert_true(puts_stubs >= 8);
	symtab_destroy(tab);
	image_destroy(image);
	scratch_deinit(&s);
}

static void test_plt(void **state)
{
	check_plt("cc", "-Wl,-z,lazy");
	check_plt("cc", "-Wl,-z,now");
#ifdef __x86_64__
	check_plt("cc", "-fcf-protection -Wl,-z,ibtplt");
#endif
}

/* All decoders work on every host. */
static void test_plt_of_another_architecture(void **state)
{
#ifdef __x86_64__
	static const char cc[] = "aarch64-linux-gnu-gcc";
	static const char flags[] = "-mbranch-protection=standard -Wl,-z,force-bti";
#else
	static const char cc[] = "x86_64-linux-gnu-gcc";
	static const char flags[] = "-fcf-protection -Wl,-z,ibtplt";
#endif

	scratch_needs(cc);
	check_plt(cc, "-Wl,-z,lazy");
	check_plt(cc, flags);
}

enum { CROWD = 4000, TABLES = 10 };

/* Many symbols, one table of them or several that are the same bytes, with strings that have no end. */
static struct symtab *make_crowd(struct elfmake *e, struct image **image, size_t strings_len, unsigned tables)
{
	Elf64_Sym *symbols = calloc(CROWD, sizeof(*symbols));
	char *strings = malloc(strings_len);
	struct symtab *tab = NULL;
	unsigned text, names, table;

	memset(strings, 'A', strings_len);
	elfmake_init(e, EM_X86_64);
	text = elfmake_section(
		e, ".text",
		(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x1000},
		(char[CROWD]){0}, CROWD);
	names = elfmake_section(e, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, strings, strings_len);
	for (unsigned i = 1; i < CROWD; i++)
		symbols[i] = (Elf64_Sym){.st_name = (uint32_t)(i % strings_len),
					 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					 .st_shndx = (uint16_t)text,
					 .st_value = 0x1000 + i,
					 .st_size = 1};
	table = elfmake_section(e, ".symtab",
				(Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_entsize = sizeof(Elf64_Sym), .sh_link = names},
				symbols, CROWD * sizeof(*symbols));
	for (unsigned i = 1; i < tables; i++)
		e->shdrs[e->nshdrs++] = e->shdrs[table];
	*image = elfmake_image(e);
	assert_int_equal(symtab_create(*image, NULL, NULL, &tab), 0);
	free(symbols);
	free(strings);
	return tab;
}

/* Each name is cut, and all together are no more than some times the file: no square of its size is read or kept. */
static void test_names_without_end(void **state)
{
	struct elfmake e;
	struct image *image;
	struct symtab *tab = make_crowd(&e, &image, 2 * SYMRECORDS_MAX_NAME, 1);
	struct symbol symbol;

	assert_in_range(symtab_len(tab), 1, 10 * e.len / SYMRECORDS_MAX_NAME);
	assert_true(symtab_find(tab, 0x1001, &symbol));
	assert_int_equal(symbol.name_len, SYMRECORDS_MAX_NAME);
	symtab_destroy(tab);
	image_destroy(image);
	elfmake_deinit(&e);

	tab = make_crowd(&e, &image, SYMRECORDS_MAX_NAME - 1, 1); /* too short to tell whether it is a name */
	assert_int_equal(symtab_len(tab), 0);
	symtab_destroy(tab);
	image_destroy(image);
	elfmake_deinit(&e);
}

static void test_tables_that_overlap(void **state)
{
	struct elfmake e;
	struct image *image;
	struct symtab *tab;
	size_t alone;

	tab = make_crowd(&e, &image, 2 * SYMRECORDS_MAX_NAME, 1);
	alone = symtab_len(tab);
	symtab_destroy(tab);
	image_destroy(image);
	elfmake_deinit(&e);
	tab = make_crowd(&e, &image, 2 * SYMRECORDS_MAX_NAME, TABLES);
	assert_in_range(symtab_len(tab), alone, alone + 1); /* the headers make the file larger */
	symtab_destroy(tab);
	image_destroy(image);
	elfmake_deinit(&e);
}

/* Cut anywhere, a file loses names, and nothing else. */
static void test_truncated(void **state)
{
	struct scratch s = make_object();
	size_t len;
	char *data = scratch_read(&s, "t.so", &len);

	for (size_t cut = 0; cut < len; cut += cut < 256 ? 16 : 512) {
		struct image *image = NULL;
		struct symtab *tab;
		struct symbol symbol;

		scratch_write(&s, "cut.so", data, cut);
		if (image_open_fd(scratch_open(&s, "cut.so", O_RDONLY), NULL, &image) < 0)
			continue;
		assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
		symtab_find(tab, 0x1100, &symbol);
		symtab_destroy(tab);
		image_destroy(image);
	}
	free(data);
	scratch_deinit(&s);
}

/* Many names of one address, in any order: the first in the alphabet is seen, wherever it stands. */
static void test_many_aliases(void **state)
{
	enum { NAMES = 100, LEN = 5 };
	const Elf64_Shdr code = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x1000};
	const Elf64_Shdr symtab = {.sh_type = SHT_SYMTAB, .sh_link = 2};

	for (unsigned step = 1; step < NAMES; step += 2) { /* those that divide 100 leave names out: others come twice */
		Elf64_Sym symbols[NAMES + 1] = {0};
		char strings[1 + NAMES * LEN] = "";
		struct elfmake e;
		struct image *image;
		struct symtab *tab;
		struct symbol symbol;

		for (unsigned i = 0; i < NAMES; i++) {
			snprintf(strings + 1 + i * LEN, LEN, "f%03u", (i * step + 50) % NAMES);
			symbols[i + 1] = (Elf64_Sym){.st_name = 1 + i * LEN,
						     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						     .st_shndx = 1,
						     .st_value = 0x1000,
						     .st_size = 4};
		}
		elfmake_init(&e, EM_X86_64);
		elfmake_section(&e, ".text", code, "code", 4);
		elfmake_section(&e, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, strings, sizeof(strings));
		elfmake_section(&e, ".symtab", symtab, symbols, sizeof(symbols));
		image = elfmake_image(&e);
		assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
		assert_true(symtab_find(tab, 0x1003, &symbol));
		assert_int_equal(symbol.name_len, LEN - 1);
		assert_memory_equal(symbol.name, "f000", LEN - 1);
		symtab_destroy(tab);
		image_destroy(image);
		elfmake_deinit(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_aliases),
		cmocka_unit_test(test_choice_and_extent),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_32bit_without_section_headers),
		cmocka_unit_test(test_32bit_big_endian_without_section_headers),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_minidebug),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_plt_of_another_architecture),
		cmocka_unit_test(test_names_without_end),
		cmocka_unit_test(test_tables_that_overlap),
		cmocka_unit_test(test_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
