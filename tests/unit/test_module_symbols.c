/* SPDX-License-Identifier: MIT */
/* Where a module's names come from, and what is said when they are missing. */
#include "elfmake.h"
#include "scratch.h"

#include "libelf_of.h"
#include "symbol/module_symbols.h"

static const char source[] = "static __attribute__((noinline, used)) int hidden(int x) { return x * 7; }\n"
			     "int shown(int x) { return hidden(x) + 1; }\n";

static const struct symbol_options no_options;

struct fixture {
	struct scratch scratch;
	struct module module;
	struct calls calls;
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
	symbols = module_symbols(&f->module, &no_options);
	assert_non_null(symbols);
	assert_ptr_equal(module_symbols(&f->module, &no_options), symbols); /* opened once */
	assert_ptr_equal(f->module.symbol, symbols);
	return symbols;
}

static void close_module(struct fixture *f)
{
	f->module.symbol_free(f->module.symbol);
	image_destroy(f->module.image);
	vec_deinit(&f->calls);
	f->module = (struct module){.root_fd = -1};
}

/* The call at the start of a function that is called so in l.so; NULL when nothing is known of it. */
static const struct call *look_up(struct fixture *f, const char *function)
{
	struct image *image = scratch_image(&f->scratch, "l.so");
	uint64_t size, at = libelf_symbol(image, function, &size);

	assert_true(at);
	image_destroy(image);
	if (!module_symbols_find(f->module.symbol, at, &f->calls))
		return NULL;
	assert_int_equal(f->calls.len, 1);
	assert_int_equal(f->calls.data[0].start, at);
	return &f->calls.data[0];
}

/* By the symbol table, or by the DWARF when that knows it better. */
static bool is_named(const struct call *call, const char *name)
{
	if (!call || !call->linkage)
		return call && call->name && strcmp(call->name, name) == 0;
	return call->linkage_len == strlen(name) && memcmp(call->linkage, name, call->linkage_len) == 0;
}

/* The function is known by its name; when `line` is not 0, so is its line. */
static void expect_known(struct fixture *f, const char *function, uint32_t line)
{
	const struct call *call = look_up(f, function);

	assert_true(is_named(call, function));
	assert_int_equal(call->line, line);
	assert_int_equal(call->file != NULL, line != 0);
}

/* `hidden` has a name, which is not exported, when `locals`, and a line when `line` is not 0. */
static void expect_problem(struct fixture *f, const char *name, bool locals, uint32_t line, const char *start_of_it,
			   const char *part)
{
	open_module(f, name);
	if (locals)
		expect_known(f, "hidden", line);
	else
		assert_false(is_named(look_up(f, "hidden"), "hidden"));
	assert_non_null(f->module.info.problem);
	assert_int_equal(strncmp(f->module.info.problem, start_of_it, strlen(start_of_it)), 0);
	assert_non_null(f->module.info.help);
	if (!strstr(f->module.info.problem, part) && !strstr(f->module.info.help, part))
		fail_msg("no '%s' in '%s', '%s'", part, f->module.info.problem, f->module.info.help);
	close_module(f);
}

static void test_all_in_the_file(void **state)
{
	struct fixture f;

	start(&f, "");
	open_module(&f, "l.so");
	expect_known(&f, "hidden", 1);
	expect_known(&f, "shown", 2);
	assert_int_equal(f.calls.data[0].source, SYMBOL_SYMTAB);
	assert_null(f.module.info.problem);
	close_module(&f);
	scratch_deinit(&f.scratch);
}

static void test_separate_file(void **state)
{
	struct fixture f;

	start(&f, "-Wl,--build-id=sha1");
	scratch_run(&f.scratch, "objcopy --only-keep-debug l.so l.debug && "
				"objcopy --add-gnu-debuglink=l.debug stripped.so linked.so");
	open_module(&f, "linked.so");
	expect_known(&f, "hidden", 1);
	expect_known(&f, "shown", 2);
	assert_null(f.module.info.problem);
	close_module(&f);
	scratch_deinit(&f.scratch);
}

static void test_problems(void **state)
{
	struct fixture f;

	start(&f, "-Wl,--build-id=sha1");
	expect_problem(&f, "stripped.so", false, 0, "no debug info, and only exported names: ", "keep its debug file");
	expect_problem(&f, "symbols.so", true, 0, "no debug info: ", "keep its debug file");
	scratch_deinit(&f.scratch);

	start(&f, "-Wl,--build-id=none");
	expect_problem(&f, "stripped.so", false, 0, "no debug info, and only exported names: ", "it has no build-id");
	scratch_run(&f.scratch, "cc -shared -nostdlib -fvisibility=hidden -Wl,--build-id=none -s -o bare.so l.c");
	expect_problem(&f, "bare.so", false, 0, "no symbols and no debug info: ", "it has no build-id");
	scratch_deinit(&f.scratch);
}

/* Of DWARF that needs a file which is not there, the rest is used, and the user is told. */
static void test_missing_shared_file(void **state)
{
	struct fixture f;

	start(&f, "");
	scratch_run(&f.scratch, "printf '/nonexistent/common.debug\\0\\1\\2\\3\\4' > link && "
				"objcopy --add-section .gnu_debugaltlink=link l.so alt.so");
	expect_problem(&f, "alt.so", true, 1, "debug info is incomplete: ", "/nonexistent/common.debug");
	scratch_deinit(&f.scratch);
}

/* The kernel's own object: nobody has debug info for it, and nobody is to be told so. */
static void test_vdso(void **state)
{
	struct module module = {.info = {.path = "[vdso]"}, .root_fd = -1};
	struct module_symbols *symbols;
	struct calls calls = {0};
	struct elfmake e;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "x", 1);
	module.image = elfmake_image(&e);
	symbols = module_symbols(&module, &no_options);
	assert_non_null(symbols);
	assert_false(module_symbols_find(symbols, 0, &calls));
	assert_int_equal(calls.len, 0);
	vec_deinit(&calls);
	assert_null(module.info.problem);
	module.symbol_free(module.symbol);
	image_destroy(module.image);
	elfmake_deinit(&e);
}

/* How many files a cache has after one whose name is given was used, and cut short meanwhile or not. */
static size_t kept_of(struct fixture *f, const char *name, bool cut)
{
	struct symbol_options options = {0};
	struct store_files files = {0};
	struct store *store;
	char path[128];
	size_t n;

	snprintf(path, sizeof(path), "%s/cache-%s", f->scratch.dir, name);
	assert_int_equal(store_open(path, 1 << 20, NULL, &store), 0);
	options.cache = store;
	f->module.image = scratch_image(&f->scratch, name);
	f->module.info = (struct module_info){.path = name, .build_id = image_build_id(f->module.image)};
	assert_non_null(module_symbols(&f->module, &options));
	if (cut)
		scratch_run(&f->scratch, "truncate -s 0 %s", name);
	look_up(f, "hidden");
	assert_int_equal(f->module.info.problem && strstr(f->module.info.problem, "changed while it was read"), cut);
	close_module(f);
	assert_int_equal(store_list(store, NULL, &files), 0);
	n = files.len;
	vec_deinit(&files);
	store_close(store);
	return n;
}

static void test_changed(void **state)
{
	struct fixture f;

	start(&f, "-Wl,--build-id");
	scratch_run(&f.scratch, "cp l.so whole.so && cp l.so cut.so");
	assert_int_equal(kept_of(&f, "whole.so", false), 1);
	assert_int_equal(kept_of(&f, "cut.so", true), 0);
	scratch_deinit(&f.scratch);
}

static void test_no_image(void **state)
{
	struct module module = {.info = {.path = "/gone", .problem = "cannot be opened"}, .root_fd = -1};

	assert_null(module_symbols(&module, &no_options));
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
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_no_image),
	};

	return cmocka_run_group_tests_name("module_symbols", tests, NULL, NULL);
}
