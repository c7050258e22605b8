/* SPDX-License-Identifier: MIT */
/* Where a module's names come from, and what is said when they are missing. */
#include "elfmake.h"
#include "scratch.h"

#include "symbol/module_symbols.h"

static const char source[] = "static __attribute__((noinline, used)) int hidden(int x) { return x * 7; }\n"
			     "int shown(int x) { return hidden(x) + 1; }\n";

struct fixture {
	struct scratch scratch;
	struct module module;
	char path[128];
};

/* l.so is built with the flags; stripped.so is what strip leaves of it, symbols.so has its symbol table. */
static void start(struct fixture *f, const char *flags)
{
	*f = (struct fixture){.module = {.root_fd = -1}};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, "l.c", source);
	scratch_run(&f->scratch,
		    "cc -g -O1 -shared -fPIC %s -o l.so l.c && strip -o stripped.so l.so && "
		    "strip --strip-debug -o symbols.so l.so",
		    flags);
}

static struct module_symbols *open_module(struct fixture *f, const char *name)
{
	struct module_symbols *symbols;

	snprintf(f->path, sizeof(f->path), "%s/%s", f->scratch.dir, name);
	f->module.image = scratch_image(&f->scratch, name);
	f->module.info = (struct module_info){.path = f->path, .build_id = image_build_id(f->module.image)};
	symbols = module_symbols(&f->module);
	assert_non_null(symbols);
	assert_ptr_equal(module_symbols(&f->module), symbols); /* opened once */
	assert_ptr_equal(f->module.symbol, symbols);
	return symbols;
}

static void close_module(struct fixture *f)
{
	f->module.symbol_free(f->module.symbol);
	image_destroy(f->module.image);
	f->module = (struct module){.root_fd = -1};
}

static void expect_problem(struct fixture *f, const char *name, const char *start_of_it, const char *part)
{
	struct module_symbols *symbols = open_module(f, name);

	assert_null(symbols->dwarf);
	assert_non_null(f->module.info.problem);
	assert_int_equal(strncmp(f->module.info.problem, start_of_it, strlen(start_of_it)), 0);
	if (!strstr(f->module.info.problem, part))
		fail_msg("no '%s' in '%s'", part, f->module.info.problem);
	close_module(f);
}

static void test_all_in_the_file(void **state)
{
	struct fixture f;
	struct module_symbols *symbols;

	start(&f, "");
	symbols = open_module(&f, "l.so");
	assert_non_null(symbols->dwarf);
	assert_true(symtab_has_locals(symbols->symtab));
	assert_null(symbols->debug);
	assert_null(symbols->alt);
	assert_null(f.module.info.problem);
	close_module(&f);
	scratch_deinit(&f.scratch);
}

static void test_separate_file(void **state)
{
	struct fixture f;
	struct module_symbols *symbols;

	start(&f, "-Wl,--build-id=sha1");
	scratch_run(&f.scratch, "objcopy --only-keep-debug l.so l.debug && "
				"objcopy --add-gnu-debuglink=l.debug stripped.so linked.so");
	symbols = open_module(&f, "linked.so");
	assert_non_null(symbols->debug);
	assert_non_null(symbols->dwarf);
	assert_true(symtab_has_locals(symbols->symtab));
	assert_null(f.module.info.problem);
	close_module(&f);
	scratch_deinit(&f.scratch);
}

static void test_problems(void **state)
{
	struct fixture f;
	struct image *image;

	start(&f, "-Wl,--build-id=sha1");
	image = scratch_image(&f.scratch, "l.so");
	expect_problem(&f, "stripped.so", "no debug info, and only exported names: ", "; install its debug package");
	expect_problem(&f, "stripped.so", "no debug info, and only exported names: ", image_build_id(image));
	expect_problem(&f, "symbols.so", "no debug info: ", "; install its debug package");
	image_destroy(image);
	scratch_deinit(&f.scratch);

	start(&f, "-Wl,--build-id=none");
	expect_problem(&f, "stripped.so", "no debug info, and only exported names: ", "(build-id missing)");
	scratch_run(&f.scratch, "cc -shared -nostdlib -fvisibility=hidden -Wl,--build-id=none -s -o bare.so l.c");
	expect_problem(&f, "bare.so", "no symbols and no debug info: ", "(build-id missing)");
	scratch_deinit(&f.scratch);
}

/* DWARF that needs a file which is not there is not used at all: half of it would be wrong. */
static void test_missing_shared_file(void **state)
{
	struct fixture f;

	start(&f, "");
	scratch_run(&f.scratch, "printf '/nonexistent/common.debug\\0\\1\\2\\3\\4' > link && "
				"objcopy --add-section .gnu_debugaltlink=link l.so alt.so");
	expect_problem(&f, "alt.so", "no debug info: ", "/nonexistent/common.debug");
	scratch_deinit(&f.scratch);
}

/* The kernel's own object: nobody has debug info for it, and nobody is to be told so. */
static void test_vdso(void **state)
{
	struct module module = {.info = {.path = "[vdso]"}, .root_fd = -1};
	struct module_symbols *symbols;
	struct elfmake e;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "x", 1);
	module.image = elfmake_image(&e);
	symbols = module_symbols(&module);
	assert_non_null(symbols);
	assert_null(symbols->dwarf);
	assert_int_equal(symtab_len(symbols->symtab), 0);
	assert_null(module.info.problem);
	module.symbol_free(module.symbol);
	image_destroy(module.image);
	elfmake_deinit(&e);
}

static void test_no_image(void **state)
{
	struct module module = {.info = {.path = "/gone", .problem = "cannot be opened"}, .root_fd = -1};

	assert_null(module_symbols(&module));
	assert_null(module.symbol);
	assert_string_equal(module.info.problem, "cannot be opened");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_in_the_file),
		cmocka_unit_test(test_separate_file),
		cmocka_unit_test(test_problems),
		cmocka_unit_test(test_missing_shared_file),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_no_image),
	};

	return cmocka_run_group_tests_name("module_symbols", tests, NULL, NULL);
}
