/* SPDX-License-Identifier: MIT */
#include "elfmake.h"

#include "elf/symrecords.h"

static uint64_t plenty = UINT64_C(1) << 40;

static struct symrecords over(const void *records, size_t records_len, const void *names, size_t names_len)
{
	return (struct symrecords){
		.records = cursor_init(records, records_len),
		.names = cursor_init(names, names_len),
		.wide = true,
		.budget = &plenty,
	};
}

static void expect_name(struct symrecords *table, uint32_t offset, const char *want)
{
	Elf64_Sym sym = {.st_name = offset};
	size_t len = 0;
	const char *name = symrecords_name(table, &sym, &len);

	if (!want) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(name, want, len);
}

static void test_names(void **state)
{
	static const char strings[] = {'\0', 'o', 'n', 'e', '\0', 't', 'w', 'o'};
	struct symrecords table = over(NULL, 0, strings, sizeof(strings));
	Elf64_Sym sym = {.st_name = 1};

	expect_name(&table, 0, "");
	expect_name(&table, 1, "one");
	expect_name(&table, 2, "ne");
	expect_name(&table, 5, NULL); /* no end */
	expect_name(&table, 8, NULL);
	expect_name(&table, UINT32_MAX, NULL);
	assert_true(symrecords_is_named(&table, &sym, "one"));
	assert_false(symrecords_is_named(&table, &sym, "on"));
	assert_false(symrecords_is_named(&table, &sym, "one more that is longer than the strings"));
	sym.st_name = 5;
	assert_false(symrecords_is_named(&table, &sym, "two"));
	sym.st_name = UINT32_MAX;
	assert_false(symrecords_is_named(&table, &sym, ""));
	table.names = cursor_init(NULL, 0);
	expect_name(&table, 0, NULL);
}

/* Where the name ends is not looked for any further. */
static void test_long_names(void **state)
{
	const size_t size = 2 * SYMRECORDS_MAX_NAME;
	char *strings = malloc(size);
	struct symrecords table;
	Elf64_Sym sym = {0};
	size_t len = 0;

	assert_non_null(strings);
	memset(strings, 'A', size);
	table = over(NULL, 0, strings, size);
	assert_ptr_equal(symrecords_name(&table, &sym, &len), strings);
	assert_int_equal(len, SYMRECORDS_MAX_NAME);
	strings[SYMRECORDS_MAX_NAME - 1] = '\0';
	assert_ptr_equal(symrecords_name(&table, &sym, &len), strings);
	assert_int_equal(len, SYMRECORDS_MAX_NAME - 1);
	sym.st_name = SYMRECORDS_MAX_NAME + 1; /* fewer bytes than that are left */
	assert_null(symrecords_name(&table, &sym, &len));
	free(strings);
}

static void test_records(void **state)
{
	static const uint8_t narrow[] = {0, 0, 0, 7, 0x10, 0, 0, 1, 0, 0, 0, 0x20, 0x12, 3, 0xff, 0xf1, 9};
	const Elf64_Sym wide[] = {{.st_name = 1},
				  {.st_name = 2,
				   .st_info = 0x12,
				   .st_other = 3,
				   .st_shndx = 4,
				   .st_value = UINT64_C(0x123456789a),
				   .st_size = UINT64_C(0x9876543210)}};
	struct symrecords table = over(wide, sizeof(wide), NULL, 0);
	Elf64_Sym sym;

	assert_true(symrecords_seek(&table, 1));
	assert_true(symrecords_next(&table, &sym));
	assert_memory_equal(&sym, &wide[1], sizeof(sym));
	assert_false(symrecords_next(&table, &sym));
	table = over(wide, sizeof(wide), NULL, 0);
	assert_false(symrecords_seek(&table, UINT64_MAX / 3));
	assert_false(symrecords_next(&table, &sym));

	table = over(narrow, sizeof(narrow), NULL, 0);
	table.wide = false;
	table.records.big_endian = true;
	assert_true(symrecords_next(&table, &sym));
	assert_int_equal(sym.st_name, 7);
	assert_int_equal(sym.st_value, 0x10000001);
	assert_int_equal(sym.st_size, 0x20);
	assert_int_equal(sym.st_info, 0x12);
	assert_int_equal(sym.st_other, 3);
	assert_int_equal(sym.st_shndx, SHN_ABS);
	assert_false(symrecords_next(&table, &sym)); /* a byte is no record */
}

static void test_budget(void **state)
{
	const Elf64_Sym records[4] = {0};
	uint64_t budget = 2 * sizeof(Elf64_Sym) + 3;
	struct symrecords table = over(records, sizeof(records), "one\0", 4);
	Elf64_Sym sym;
	size_t len;

	table.budget = &budget;
	assert_true(symrecords_next(&table, &sym));
	assert_non_null(symrecords_name(&table, &sym, &len));
	assert_true(symrecords_next(&table, &sym));
	assert_null(symrecords_name(&table, &sym, &len));
	assert_int_equal(budget, 0);
	assert_false(symrecords_next(&table, &sym));
	assert_true(symrecords_charge(&table, 0));
	assert_false(symrecords_charge(&table, 1));
}

/* A table of two symbols whose strings are in a section with these fields. */
static bool has_names(Elf64_Shdr strings, Elf64_Shdr symbols)
{
	const Elf64_Sym records[] = {{0}, {.st_name = 1}};
	uint64_t budget;
	struct symrecords table;
	struct elfmake e;
	struct image *image;
	Elf64_Sym sym;
	size_t len;
	bool found;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".strtab", strings, "\0one", 5);
	elfmake_section(&e, ".symtab", symbols, records, sizeof(records));
	image = elfmake_image(&e);
	budget = symrecords_budget(image);
	assert_in_range(budget, e.len, 100 * e.len);
	table = symrecords_init(image, 2, &budget);
	symrecords_seek(&table, 1);
	found = symrecords_next(&table, &sym) && symrecords_name(&table, &sym, &len);
	sym.st_name = 0;
	if (!symrecords_name(&table, &sym, &len)) /* the first has a name, if there are strings at all */
		assert_false(found);
	image_destroy(image);
	elfmake_deinit(&e);
	return found;
}

static void test_sections(void **state)
{
	const Elf64_Shdr strings = {.sh_type = SHT_STRTAB}, symbols = {.sh_type = SHT_SYMTAB, .sh_link = 1};

	assert_true(has_names(strings, symbols));
	assert_false(has_names((Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_flags = SHF_COMPRESSED}, symbols));
	assert_false(has_names((Elf64_Shdr){.sh_type = SHT_NOBITS}, symbols));
	assert_false(has_names((Elf64_Shdr){.sh_type = SHT_PROGBITS}, symbols));
	for (uint32_t link = 0; link < 6; link++)
		assert_int_equal(has_names(strings, (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = link}),
				 link == 1 || link == 3); /* 3: names of sections */
	assert_false(has_names(strings, (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_flags = SHF_COMPRESSED, .sh_link = 1}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),  cmocka_unit_test(test_long_names), cmocka_unit_test(test_records),
		cmocka_unit_test(test_budget), cmocka_unit_test(test_sections),
	};

	return cmocka_run_group_tests_name("symrecords", tests, NULL, NULL);
}
