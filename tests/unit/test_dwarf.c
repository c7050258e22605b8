/* SPDX-License-Identifier: MIT */
/* DWARF of real compilers, against what their sources say. test_split.c has what they put into other files. */
#include "dwarfchain.h"
#include "elfmake.h"
#include "scratch.h"

#include <errno.h>

#include "base/intervals.h"
#include "target/debugfile.h"

static const char nested_c[] = "volatile int sink;\n"
			       "static inline __attribute__((always_inline)) void leaf(int x)\n"
			       "{\n"
			       "	sink = x;\n" /* 4 */
			       "}\n"
			       "static inline __attribute__((always_inline)) void middle(int x)\n"
			       "{\n"
			       "	for (int i = 0; i < x; i++)\n"
			       "		leaf(i * 3);\n" /* 9 */
			       "}\n"
			       "void outer(int x)\n"
			       "{\n"
			       "	middle(x);\n" /* 13 */
			       "	sink = 7;\n"
			       "}\n"
			       "int second(int x) { return sink + x; }\n"; /* 16 */

struct fixture {
	struct scratch scratch;
	struct image *image, *alt;
	struct dwarf *dwarf;
};

static void open_file(struct fixture *f, const char *name)
{
	struct dwarf_options options = {0};

	f->image = options.image = scratch_image(&f->scratch, name);
	f->alt = NULL;
	if (image_section(f->image, ".gnu_debugaltlink").data) {
		image_set_path(f->image, f->scratch.dir);
		assert_int_equal(debugfile_open_alt(f->image, NULL, -1, NULL, &f->alt), 0);
	}
	options.alt = f->alt;
	assert_int_equal(dwarf_create(&options, NULL, &f->dwarf), 0);
}

static void close_file(struct fixture *f)
{
	dwarf_destroy(f->dwarf);
	image_destroy(f->image);
	image_destroy(f->alt);
}

static void start(struct fixture *f, const char *command)
{
	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, "l.c", nested_c);
	scratch_run(&f->scratch, "%s", command);
}

static void finish(struct fixture *f)
{
	scratch_deinit(&f->scratch);
}

static void check_nested(struct fixture *f)
{
	assert_true(has_chain(f->dwarf, f->image, "outer", "leaf l.c:4, middle l.c:9, outer l.c:13"));
	assert_true(has_chain(f->dwarf, f->image, "outer", "outer l.c:14"));
	assert_true(has_chain(f->dwarf, f->image, "second", "second l.c:16"));
}

static bool works(const char *command)
{
	char quiet[640];

	snprintf(quiet, sizeof(quiet), "cd /tmp && echo 'void f(void) {}' | %s >/dev/null 2>&1", command);
	return system(quiet) == 0;
}

/* Each of the flags for which the compiler makes a file. */
static void check_flags(const char *compiler, const char *const *flags)
{
	char command[512];

	scratch_needs(compiler);
	for (; *flags; flags++) {
		struct fixture f;

		snprintf(command, sizeof(command), "%s -O2 %s -nostdlib -shared -fPIC -o /dev/null -xc -", compiler,
			 *flags);
		if (!works(command)) {
			print_message("left out: %s does not know %s\n", compiler, *flags);
			continue;
		}
		snprintf(command, sizeof(command), "%s -O2 %s -nostdlib -shared -fPIC -o l.so l.c", compiler, *flags);
		start(&f, command);
		open_file(&f, "l.so");
		check_nested(&f);
		assert_int_equal(dwarf_nunits(f.dwarf) >= 1, 1);
		close_file(&f);
		finish(&f);
	}
}

static void test_gcc(void **state)
{
	static const char *const flags[] = {
		"-gdwarf-2",
		"-gdwarf-3",
		"-gdwarf-4",
		"-gdwarf-5",
		"-gdwarf-5 -gdwarf64",
		"-gdwarf-4 -gdwarf64",
		"-gdwarf-4 -fdebug-types-section",
		"-gdwarf-5 -fdebug-types-section",
		"-gdwarf-5 -ffunction-sections",
		"-gdwarf-4 -ffunction-sections",
		"-g -flto",
		"-g -Wl,-z,noseparate-code",
		"-g -gz=zlib",
		NULL,
	};

	check_flags("gcc", flags);
}

static void test_clang(void **state)
{
	static const char *const flags[] = {
		"-gdwarf-2",
		"-gdwarf-3",
		"-gdwarf-4",
		"-gdwarf-5",
		"-gdwarf-5 -ffunction-sections",
		"-gdwarf-4 -ffunction-sections",
		"-gdwarf-5 -fuse-ld=lld",
		"-gdwarf-5 -gdwarf64",
		NULL,
	};

	check_flags("clang", flags);
}

/* Other machines: 32-bit, big-endian. */
static void test_powerpc(void **state)
{
	static const char *const flags[] = {"-gdwarf-2", "-gdwarf-4 -ffunction-sections",
					    "-gdwarf-5 -ffunction-sections", NULL};

	check_flags("powerpc-linux-gnu-gcc", flags);
}

static void test_i686(void **state)
{
	static const char *const flags[] = {"-gdwarf-4 -ffunction-sections", "-gdwarf-5 -ffunction-sections", NULL};

	check_flags("i686-linux-gnu-gcc", flags);
}

/* Strict DWARF 2 cannot tell that a unit has several ranges: only .debug_aranges does. */
static void test_units_by_aranges(void **state)
{
	struct fixture f;

	scratch_needs("gcc");
	start(&f, "gcc -O2 -gdwarf-2 -gstrict-dwarf -ffunction-sections -shared -fPIC -o l.so l.c && "
		  "objcopy --remove-section .debug_aranges l.so bare.so");
	open_file(&f, "l.so");
	assert_true(has_chain(f.dwarf, f.image, "outer", "outer l.c:14")); /* it cannot tell where calls were inlined */
	assert_true(has_chain(f.dwarf, f.image, "second", "second l.c:16"));
	close_file(&f);
	open_file(&f, "bare.so"); /* the proof that it was this section */
	assert_int_equal(dwarf_units(f.dwarf)->len, 0);
	close_file(&f);
	finish(&f);
}

/* Functions that the linker dropped are nowhere, though their DWARF says that they are at 0. */
static void test_dropped(void **state)
{
	static const char *const linkers[] = {"bfd", "gold", "lld"};
	char command[512], chain[CHAIN_MAX];

	scratch_needs("gcc");
	for (size_t i = 0; i < 3; i++) {
		struct fixture f;

		snprintf(command, sizeof(command), "command -v ld.%s", linkers[i]);
		if (!works(command))
			continue;
		snprintf(command, sizeof(command),
			 "printf '{ global: second; local: *; };' > map && gcc -g -O2 -shared -fPIC -nostdlib "
			 "-ffunction-sections -fuse-ld=%s -Wl,--gc-sections -Wl,--version-script=map -o l.so l.c",
			 linkers[i]);
		start(&f, command);
		open_file(&f, "l.so");
		assert_true(has_chain(f.dwarf, f.image, "second", "second l.c:16"));
		for (uint64_t at = 0; at < 0x2000; at++) {
			chain_at(f.dwarf, at, chain);
			assert_null(strstr(chain, "outer"));
			assert_null(strstr(chain, "leaf"));
		}
		close_file(&f);
		finish(&f);
	}
}

/* What dwz shared is in another file: names are looked up there. */
static void test_dwz(void **state)
{
	static const char source[] =
		"extern volatile int sink;\n"
		"struct long_name_of_a_structure { int first, second, third; long fourth; };\n"
		"static __attribute__((noinline)) int shared_function(struct long_name_of_a_structure *s)\n"
		"{\n"
		"	return s->first + s->second + sink;\n" /* 5 */
		"}\n"
		"static inline __attribute__((always_inline)) int inlined_function(int a, int b)\n"
		"{\n"
		"	return sink * a + b;\n" /* 9 */
		"}\n";
	struct fixture f;

	scratch_needs("dwz");
	start(&f, "true");
	scratch_text(&f.scratch, "s.h", source);
	for (const char *name = "ab"; *name; name++) {
		scratch_run(&f.scratch,
			    "printf '#include \"s.h\"\\nvolatile int sink;\\nint use_%c(struct "
			    "long_name_of_a_structure *s)\\n"
			    "{\\n\\treturn shared_function(s) + inlined_function(s->third, 3);\\n}\\n' > %c.c && "
			    "cc -g -O1 -shared -fPIC -Wl,--build-id=sha1 -o %c.so %c.c",
			    *name, *name, *name, *name);
	}
	scratch_run(&f.scratch, "dwz -m common.debug -M $PWD/common.debug a.so b.so");
	open_file(&f, "a.so");
	assert_non_null(f.alt);
	assert_true(has_chain(f.dwarf, f.image, "use_a", "inlined_function s.h:9, use_a a.c:5"));
	assert_true(has_chain(f.dwarf, f.image, "shared_function", "shared_function s.h:5"));
	close_file(&f);
	finish(&f);
}

/* A name may be several links away, in another unit (LTO), and a member function's is in its class. */
static void test_links(void **state)
{
	struct fixture f;
	struct unit_map *map;
	struct map_name name;
	uint64_t size, at;

	scratch_needs("c++");
	start(&f, "true");
	scratch_text(
		&f.scratch, "l.cc",
		"volatile int sink;\n"
		"namespace deep { struct thing { void method(int); static void call(int x) { sink = x * 3; } }; }\n"
		"void deep::thing::method(int x) { call(x); sink = 5; }\n");
	scratch_run(&f.scratch, "c++ -g -O2 -shared -fPIC -o l.so l.cc");
	open_file(&f, "l.so");
	assert_true(has_chain(f.dwarf, f.image, "_ZN4deep5thing6methodEi", "call l.cc:2, method l.cc:3"));
	at = libelf_symbol(f.image, "_ZN4deep5thing6methodEi", &size);
	map = dwarf_map_unit(f.dwarf, dwarf_unit_at(f.dwarf, at));
	assert_true(map->ops->name(map, map->scopes[0].name, &name));
	assert_string_equal(name.linkage, "_ZN4deep5thing6methodEi");
	assert_string_equal(name.name, "method");
	assert_false(map->ops->name(map, MAP_NONE, &name));
	assert_false(map->ops->name(map, UINT32_C(1) << 31 | 77777, &name));
	assert_false(map->ops->name(map, 0, &name)); /* where the unit's header is */
	unit_map_destroy(map);
	close_file(&f);
	scratch_text(&f.scratch, "h.c", "extern volatile int sink;\nvoid helper(int x)\n{\n	sink = x * 77;\n}\n");
	scratch_text(&f.scratch, "u.c",
		     "void helper(int);\nvolatile int sink;\nvoid user(void)\n{\n	helper(3);\n}\n");
	scratch_run(&f.scratch, "cc -g -O2 -flto -shared -fPIC -fno-semantic-interposition -o lto.so h.c u.c");
	open_file(&f, "lto.so");
	assert_true(has_chain(f.dwarf, f.image, "user", "helper h.c:4, user u.c:5"));
	close_file(&f);
	finish(&f);
}

/* All units, each with the code that the index gives it. */
static void test_units(void **state)
{
	const struct pieces *pieces;
	struct fixture f;

	start(&f, "printf 'int third(int x) { return x * 5; }\\n' > t.c && cc -g -O1 -shared -fPIC -nostdlib -o l.so "
		  "l.c t.c");
	open_file(&f, "l.so");
	assert_int_equal(dwarf_nunits(f.dwarf), 2);
	pieces = dwarf_units(f.dwarf);
	assert_true(pieces->len >= 2);
	for (size_t i = 0; i < pieces->len; i++) {
		struct unit_map *map;

		assert_int_equal(dwarf_unit_at(f.dwarf, pieces->data[i].start), pieces->data[i].id);
		if (pieces->data[i].id == PIECE_NONE)
			continue;
		map = dwarf_map_unit(f.dwarf, pieces->data[i].id);
		assert_true(map->whole);
		assert_true(unit_map_scope(map, pieces->data[i].start) != MAP_NONE);
		assert_non_null(unit_map_row(map, pieces->data[i].start));
		unit_map_destroy(map);
	}
	assert_int_equal(dwarf_unit_at(f.dwarf, 0), MAP_NONE);
	assert_int_equal(dwarf_unit_at(f.dwarf, UINT64_MAX), MAP_NONE);
	assert_true(has_chain(f.dwarf, f.image, "third", "third t.c:1"));
	assert_null(dwarf_missing_split(f.dwarf));
	close_file(&f);
	finish(&f);
}

static void test_refused(void **state)
{
	static const uint8_t future[] = {8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 8, 1};
	static const struct {
		const void *info;
		size_t len;
		int expected;
	} cases[] = {{NULL, 0, -ENOENT}, {future, sizeof(future), -EINVAL}, {future, 3, -EINVAL}};

	for (size_t i = 0; i < 3; i++) {
		struct dwarf *dwarf = NULL;
		struct dwarf_options options = {0};
		struct err err = {0};
		struct elfmake e;

		elfmake_init(&e, EM_X86_64);
		if (cases[i].info)
			elfmake_section(&e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, cases[i].info,
					cases[i].len);
		options.image = elfmake_image(&e);
		assert_int_equal(dwarf_create(&options, &err, &dwarf), cases[i].expected);
		assert_null(dwarf);
		assert_true(err.msg[0]);
		image_destroy(options.image);
		elfmake_deinit(&e);
	}
	dwarf_destroy(NULL);
}

/* Many units that all name one large list of ranges, or one large table of abbreviations: read in no time. */
static void test_shared_without_end(void **state)
{
	enum { UNITS = 3000, RANGES = 5000 };
	static const uint8_t abbrev[] = {1, 0x11, 0, 0x11, 0x01, 0x55, 0x17, 0, 0, 0}; /* low pc, ranges */
	static const uint8_t unit[] = {20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	uint8_t *info = malloc(UNITS * sizeof(unit));
	uint64_t *ranges = malloc(RANGES * 16);
	struct dwarf_options options = {0};
	struct dwarf *dwarf = NULL;
	struct elfmake e;

	for (size_t i = 0; i < UNITS; i++)
		memcpy(info + i * sizeof(unit), unit, sizeof(unit));
	for (uint64_t i = 0; i < RANGES; i++) {
		ranges[2 * i] = 0x1000 + 2 * i;
		ranges[2 * i + 1] = 0x1001 + 2 * i;
	}
	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, info, UNITS * sizeof(unit));
	elfmake_section(&e, ".debug_abbrev", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, abbrev, sizeof(abbrev));
	elfmake_section(&e, ".debug_ranges", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, ranges, RANGES * 16);
	elfmake_section(&e, ".text",
			(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = 0x1000}, info,
			0x8000);
	options.image = elfmake_image(&e);
	assert_int_equal(dwarf_create(&options, NULL, &dwarf), 0);
	assert_int_equal(dwarf_nunits(dwarf), UNITS);
	assert_int_not_equal(dwarf_unit_at(dwarf, 0x1000), MAP_NONE);
	dwarf_destroy(dwarf);
	image_destroy(options.image);
	elfmake_deinit(&e);
	free(info);
	free(ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gcc),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_powerpc),
		cmocka_unit_test(test_i686),
		cmocka_unit_test(test_units_by_aranges),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_dwz),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shared_without_end),
	};

	return cmocka_run_group_tests_name("dwarf", tests, NULL, NULL);
}
