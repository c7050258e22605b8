/* SPDX-License-Identifier: MIT */
#include "libelf_of.h"
#include "scratch.h"

#include "symbol/lookups.h"

enum { MODULES = 5 };

static const struct symbol_options no_options;

struct fixture {
	struct scratch scratch;
	struct module modules[MODULES];
	char paths[MODULES][96];
};

/* Module n is ln.so: its function fn is at line n + 1 of its unit, gn in another unit. */
static void start(struct fixture *f)
{
	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	for (unsigned i = 0; i < MODULES; i++) {
		scratch_run(
			&f->scratch,
			"{ yes '' | head -%u; echo 'int f%u(int x) { return x + %u; }'; } > f.c && "
			"echo 'int g%u(int x) { return x * 3; }' > g.c && cc -g -O1 -shared -fPIC -o l%u.so f.c g.c",
			i + 1, i, i, i, i);
		snprintf(f->paths[i], sizeof(f->paths[i]), "%s/l%u.so", f->scratch.dir, i);
		f->modules[i] = (struct module){.root_fd = -1};
		f->modules[i].image = scratch_image(&f->scratch, strrchr(f->paths[i], '/') + 1);
		f->modules[i].info.path = f->paths[i];
	}
}

static void finish(struct fixture *f)
{
	for (unsigned i = 0; i < MODULES; i++) {
		if (f->modules[i].symbol)
			f->modules[i].symbol_free(f->modules[i].symbol);
		image_destroy(f->modules[i].image);
	}
	scratch_deinit(&f->scratch);
}

static uint64_t address_of(struct fixture *f, unsigned module, char function)
{
	char name[16];
	uint64_t size, at;

	snprintf(name, sizeof(name), "%c%u", function, module);
	at = libelf_symbol(f->modules[module].image, name, &size);
	assert_true(at);
	return at;
}

static void check(struct fixture *f, unsigned module, char function, uint32_t line)
{
	struct calls calls = {0};

	assert_true(module_symbols_find(f->modules[module].symbol, address_of(f, module, function), &calls));
	assert_int_equal(calls.len, 1);
	assert_int_equal(calls.data[0].linkage[0], function);
	assert_int_equal(calls.data[0].line, line);
	vec_deinit(&calls);
}

static void test_all_modules(void **state)
{
	struct lookups lookups = {0};
	struct fixture f;

	start(&f);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < MODULES; i++)
			assert_true(lookups_add(&lookups, &f.modules[i], address_of(&f, i, round % 2 ? 'g' : 'f')));
	assert_int_equal(lookups.len, MODULES);
	for (unsigned i = 0; i < MODULES; i++) {
		assert_ptr_equal(lookups.data[i].module, &f.modules[i]);
		assert_int_equal(lookups.data[i].vaddrs.len, 3);
	}
	lookups_prepare(&lookups, &no_options);
	for (unsigned i = 0; i < MODULES; i++) {
		assert_ptr_equal(lookups.data[i].symbols, f.modules[i].symbol);
		assert_int_equal(lookups.data[i].wanted, 2); /* each unit once */
		check(&f, i, 'f', i + 2);
		check(&f, i, 'g', 1);
	}
	lookups_deinit(&lookups);
	finish(&f);
}

/* Only what was asked for is read beforehand; the rest is when it is asked for. */
static void test_some(void **state)
{
	struct lookups lookups = {0};
	struct fixture f;

	start(&f);
	assert_true(lookups_add(&lookups, &f.modules[2], address_of(&f, 2, 'g')));
	assert_true(lookups_add(&lookups, &f.modules[1], 0)); /* no code */
	lookups_prepare(&lookups, &no_options);
	assert_int_equal(lookups.data[0].wanted, 1);
	assert_int_equal(lookups.data[1].wanted, 0);
	assert_null(f.modules[0].symbol);
	check(&f, 2, 'g', 1);
	check(&f, 2, 'f', 4);
	check(&f, 1, 'f', 3);
	lookups_deinit(&lookups);
	/* Again: nothing is left to be read. */
	lookups = (struct lookups){0};
	assert_true(lookups_add(&lookups, &f.modules[2], address_of(&f, 2, 'f')));
	lookups_prepare(&lookups, &no_options);
	assert_int_equal(lookups.data[0].wanted, 0);
	lookups_deinit(&lookups);
	finish(&f);
}

static void test_nothing(void **state)
{
	struct module gone = {.info.path = "/gone", .root_fd = -1};
	struct lookups lookups = {0};

	lookups_prepare(&lookups, &no_options);
	assert_true(lookups_add(&lookups, &gone, 0x1000));
	lookups_prepare(&lookups, &no_options);
	assert_null(lookups.data[0].symbols);
	assert_int_equal(lookups.data[0].wanted, 0);
	lookups_deinit(&lookups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_modules),
		cmocka_unit_test(test_some),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests_name("lookups", tests, NULL, NULL);
}
