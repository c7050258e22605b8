/* SPDX-License-Identifier: MIT */
/* Split DWARF of real compilers: functions are in .dwo files, or in one .dwp file. */
#include "dwarfchain.h"
#include "scratch.h"

#include "target/debugfile.h"

static const char common_h[] = "static volatile int sink;\n"
			       "static inline __attribute__((always_inline)) void leaf(int x)\n"
			       "{\n"
			       "	sink = x;\n" /* 4 */
			       "}\n"
			       "static inline __attribute__((always_inline)) void middle(int x)\n"
			       "{\n"
			       "	for (int i = 0; i < x; i++)\n"
			       "		leaf(i * 3);\n" /* 9 */
			       "}\n";

static const struct kind {
	const char *compiler;
	int version;
} kinds[] = {{"gcc", 4}, {"gcc", 5}, {"clang", 4}, {"clang", 5}};

enum { NKINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct fixture {
	struct scratch scratch;
	struct image *image;
	struct dwarf *dwarf;
};

static bool is_installed(const char *program)
{
	char probe[128];

	snprintf(probe, sizeof(probe), "command -v %s >/dev/null", program);
	return system(probe) == 0;
}

/*
 * Two units, a/part.c and b/part.c. When they are compiled where they lie, the .dwo files of both are called part.dwo;
 * else (`from_above`) a/part.dwo and b/part.dwo.
 */
static void build(struct fixture *f, const struct kind *kind, bool from_above)
{
	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, "common.h", common_h);
	scratch_run(&f->scratch, "mkdir a b");
	for (const char *name = "ab"; *name; name++) {
		scratch_run(&f->scratch,
			    "printf '#include \"../common.h\"\\nvoid outer_%c(int x)\\n{\\n\\tmiddle(x);\\n\\tsink = "
			    "7;\\n}\\n' "
			    "> %c/part.c",
			    *name, *name);
		scratch_run(
			&f->scratch,
			"cd %c && %s -O2 -gdwarf-%d -gsplit-dwarf -ffunction-sections -fPIC -c -o %c/part.o %c/part.c",
			from_above ? '.' : *name, kind->compiler, kind->version, from_above ? *name : '.',
			from_above ? *name : '.');
	}
	scratch_run(&f->scratch, "%s -shared -o l.so a/part.o b/part.o", kind->compiler);
}

static int open_split(void *ctx, const char *dir, const char *name, struct image **out)
{
	return debugfile_open_dwo(dir, name, NULL, -1, out);
}

static void open_dwarf(struct fixture *f, const char *package)
{
	struct dwarf_options options = {.open_split = open_split};

	f->image = options.image = scratch_image(&f->scratch, "l.so");
	if (package)
		options.package = scratch_image(&f->scratch, package);
	assert_int_equal(dwarf_create(&options, NULL, &f->dwarf), 0);
}

static void close_dwarf(struct fixture *f)
{
	dwarf_destroy(f->dwarf);
	image_destroy(f->image);
}

static void check_all(struct fixture *f)
{
	static const char *const chains[] = {
		"leaf common.h:4, middle common.h:9, outer_%c part.c:4",
		"outer_%c part.c:5",
	};

	for (const char *name = "ab"; *name; name++) {
		char symbol[16], chain[128];

		snprintf(symbol, sizeof(symbol), "outer_%c", *name);
		for (size_t i = 0; i < 2; i++) {
			snprintf(chain, sizeof(chain), chains[i], *name);
			assert_true(has_chain(f->dwarf, f->image, symbol, chain));
		}
	}
	assert_null(dwarf_missing_split(f->dwarf));
}

/* Of the unit with the symbol only lines are known. */
static void check_lines_only(struct fixture *f, const char *symbol)
{
	uint64_t size, at = libelf_symbol(f->image, symbol, &size);
	uint32_t unit = dwarf_unit_at(f->dwarf, at);
	struct unit_map *map;

	assert_true(unit != MAP_NONE);
	assert_true(has_chain(f->dwarf, f->image, symbol, "? part.c:5"));
	map = dwarf_map_unit(f->dwarf, unit);
	assert_int_equal(map->nscopes, 0);
	assert_false(map->whole); /* not for the cache */
	unit_map_destroy(map);
}

static void for_each_kind(void (*check)(const struct kind *kind))
{
	unsigned done = 0;

	for (size_t i = 0; i < NKINDS; i++) {
		if (!is_installed(kinds[i].compiler))
			continue;
		check(&kinds[i]);
		done++;
	}
	if (done)
		return;
	print_message("skipped: neither gcc nor clang is installed\n");
	skip();
}

static void check_dwo(const struct kind *kind)
{
	struct fixture f;

	build(&f, kind, false);
	open_dwarf(&f, NULL);
	check_all(&f);
	close_dwarf(&f);
	scratch_deinit(&f.scratch);
}

/* Two files of one name in two directories, too. */
static void test_dwo(void **state)
{
	for_each_kind(check_dwo);
}

static void check_missing(const struct kind *kind)
{
	struct fixture f;

	build(&f, kind, false);
	scratch_run(&f.scratch, "rm $(find . -name '*.dwo' | grep a/)");
	open_dwarf(&f, NULL);
	check_lines_only(&f, "outer_a");
	assert_true(has_chain(f.dwarf, f.image, "outer_b", "outer_b part.c:5"));
	assert_non_null(strstr(dwarf_missing_split(f.dwarf), "part.dwo"));
	close_dwarf(&f);
	scratch_deinit(&f.scratch);
}

static void test_missing(void **state)
{
	for_each_kind(check_missing);
}

static void check_stale(const struct kind *kind)
{
	struct fixture f;

	build(&f, kind, false);
	scratch_run(&f.scratch, "cp b/part.dwo a/part.dwo");
	open_dwarf(&f, NULL);
	check_lines_only(&f, "outer_a");
	assert_non_null(dwarf_missing_split(f.dwarf));
	close_dwarf(&f);
	scratch_run(&f.scratch, "echo no ELF file > a/part.dwo");
	open_dwarf(&f, NULL);
	check_lines_only(&f, "outer_a");
	assert_non_null(dwarf_missing_split(f.dwarf));
	close_dwarf(&f);
	scratch_deinit(&f.scratch);
}

/* A .dwo file of another build has another id. */
static void test_stale(void **state)
{
	for_each_kind(check_stale);
}

/* Nobody to open files: as if they were missing. */
static void test_no_opener(void **state)
{
	struct dwarf_options options = {0};
	struct fixture f;

	scratch_needs("gcc");
	build(&f, &kinds[1], false);
	f.image = options.image = scratch_image(&f.scratch, "l.so");
	assert_int_equal(dwarf_create(&options, NULL, &f.dwarf), 0);
	check_lines_only(&f, "outer_a");
	assert_non_null(dwarf_missing_split(f.dwarf));
	close_dwarf(&f);
	scratch_deinit(&f.scratch);
}

/* Packs with the tool; false when it cannot: not every one knows every version. */
static bool pack(struct fixture *f, const char *tool)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "cd %s && timeout 20 %s -e l.so -o l.so.dwp >/dev/null 2>&1 && test -s l.so.dwp && rm */*.dwo",
		 f->scratch.dir, tool);
	return system(command) == 0;
}

static void check_package(const char *compiler, int version)
{
	static const char *const tools[] = {"dwp", "llvm-dwp"};
	const struct kind kind = {compiler, version};
	unsigned done = 0;

	if (!is_installed(compiler)) {
		print_message("skipped: %s is not installed\n", compiler);
		skip();
	}
	for (size_t i = 0; i < 2; i++) {
		struct fixture f;

		if (!is_installed(tools[i]))
			continue;
		build(&f, &kind, true);
		if (pack(&f, tools[i])) {
			open_dwarf(&f, "l.so.dwp");
			check_all(&f);
			close_dwarf(&f);
			done++;
		}
		scratch_deinit(&f.scratch);
	}
	if (!done) {
		print_message("skipped: neither dwp nor llvm-dwp makes a package of DWARF %d of %s\n", version,
			      compiler);
		skip();
	}
}

static void test_package_version_2_of_gcc(void **state)
{
	check_package("gcc", 4);
}

static void test_package_version_2_of_clang(void **state)
{
	check_package("clang", 4);
}

static void test_package_version_5_of_clang(void **state)
{
	check_package("clang", 5);
}

/* A package that has not the unit: the .dwo file does. */
static void test_package_of_another_program(void **state)
{
	struct fixture f, other;

	scratch_needs("gcc");
	scratch_needs("dwp");
	build(&f, &kinds[0], true);
	build(&other, &kinds[0], true);
	scratch_run(&other.scratch,
		    "sed -i s/outer_/else_/ a/part.c && gcc -O2 -gdwarf-4 -gsplit-dwarf -fPIC -c -o a/part.o "
		    "a/part.c && gcc -shared -o l.so a/part.o");
	if (!pack(&other, "dwp")) {
		print_message("skipped: dwp does not work here\n");
		scratch_deinit(&f.scratch);
		scratch_deinit(&other.scratch);
		skip();
	}
	scratch_run(&f.scratch, "cp %s/l.so.dwp l.so.dwp", other.scratch.dir);
	open_dwarf(&f, "l.so.dwp");
	check_all(&f);
	close_dwarf(&f);
	scratch_deinit(&f.scratch);
	scratch_deinit(&other.scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dwo),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_no_opener),
		cmocka_unit_test(test_package_version_2_of_gcc),
		cmocka_unit_test(test_package_version_2_of_clang),
		cmocka_unit_test(test_package_version_5_of_clang),
		cmocka_unit_test(test_package_of_another_program),
	};

	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
