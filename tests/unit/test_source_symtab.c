/* SPDX-License-Identifier: MIT */
#include "libelf_of.h"
#include "scratch.h"

#include "symbol/source_symtab.h"

static void test_symbols(void **state)
{
	struct scratch s;
	struct image *image;
	struct symtab *tab;
	struct source source = {.ops = &symtab_source_ops};
	struct calls calls = {0};
	uint64_t at, size = 0;

	scratch_init(&s);
	scratch_text(&s, "l.c", "int named(int x) { return x; }\n");
	scratch_run(&s, "cc -O1 -shared -fPIC -o l.so l.c");
	image = scratch_image(&s, "l.so");
	at = libelf_symbol(image, "named", &size);
	assert_false(source_find(&source, at, &calls)); /* it has nothing yet */
	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	source.data = tab;
	assert_true(vec_push(&calls, (struct call){.name = "left over"}));
	assert_true(source_find(&source, at + size - 1, &calls));
	assert_int_equal(calls.len, 1);
	assert_int_equal(calls.data[0].linkage_len, strlen("named"));
	assert_memory_equal(calls.data[0].linkage, "named", strlen("named"));
	assert_int_equal(calls.data[0].source, SYMBOL_SYMTAB);
	assert_true(calls.data[0].own && calls.data[0].has_start && !calls.data[0].plt);
	assert_int_equal(calls.data[0].start, at);
	assert_null(calls.data[0].name);
	assert_null(calls.data[0].file);
	assert_false(source_find(&source, 0, &calls));
	source_deinit(&source);
	assert_null(source.data);
	vec_deinit(&calls);
	image_destroy(image);
	scratch_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests_name("source_symtab", tests, NULL, NULL);
}
