/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "elf/variables.h"
#include "elfmake.h"

/* Name, type, value and size of each symbol; names are one after the other in the strings. */
struct made {
	const char *name;
	unsigned char type;
	uint64_t value, size;
};

static struct image *make_image(struct elfmake *e, const struct made *made, size_t n)
{
	Elf64_Sym symbols[16] = {0};
	char names[256] = {0};
	size_t used = 1;
	unsigned strings;

	for (size_t i = 0; i < n; i++) {
		symbols[i + 1] = (Elf64_Sym){.st_name = (uint32_t)used, .st_info = ELF64_ST_INFO(STB_GLOBAL, made[i].type), .st_shndx = 1,
					     .st_value = made[i].value, .st_size = made[i].size};
		strcpy(names + used, made[i].name);
		used += strlen(made[i].name) + 1;
	}
	elfmake_init(e, EM_X86_64);
	strings = elfmake_section(e, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, names, used);
	elfmake_section(e, ".symtab", (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = strings, .sh_entsize = sizeof(Elf64_Sym)}, symbols,
			(n + 1) * sizeof(Elf64_Sym));
	return elfmake_image(e);
}

static void expect(const struct image *image, uint64_t vaddr, const char *name, uint64_t start)
{
	struct variable found;

	assert_int_equal(variable_find(image, vaddr, &found), name != NULL);
	if (!name)
		return;
	assert_int_equal(found.name_len, strlen(name));
	assert_memory_equal(found.name, name, found.name_len);
	assert_int_equal(found.start, start);
}

static void test_variables(void **state)
{
	static const struct made made[] = {
		{"cache", STT_OBJECT, 0x4000, 0x100}, {"cache_lock", STT_OBJECT, 0x4040, 40}, {"__cache_lock", STT_OBJECT, 0x4040, 40},
		{"function", STT_FUNC, 0x5000, 0x10}, {"nothing", STT_OBJECT, 0x6000, 0},     {"last", STT_OBJECT, UINT64_MAX - 7, 8},
	};
	struct elfmake e;
	struct image *image = make_image(&e, made, sizeof(made) / sizeof(made[0]));

	expect(image, 0x4000, "cache", 0x4000);
	expect(image, 0x4040, "cache_lock", 0x4040);
	expect(image, 0x4067, "cache_lock", 0x4040);
	expect(image, 0x4068, "cache", 0x4000);
	expect(image, 0x4100, NULL, 0);
	expect(image, 0x3fff, NULL, 0);
	expect(image, 0x5000, NULL, 0);
	expect(image, 0x6000, NULL, 0);
	expect(image, UINT64_MAX, "last", UINT64_MAX - 7);
	image_destroy(image);
	elfmake_deinit(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_variables)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
