/* SPDX-License-Identifier: MIT */
/* DWARF of real compilers and assemblers; test_symbolizer.c has what becomes of it, and damaged files. */
#include "elfmake.h"
#include "scratch.h"

#include <errno.h>

#include "libelf_of.h"
#include "symbol/source_dwarf.h"

struct fixture {
	struct scratch scratch;
	struct image *image;
	struct dwarf_source *source;
	struct calls calls;
};

static int open_dwarf(void *ctx, struct err *err, struct dwarf **out)
{
	const struct dwarf_options options = {.image = ctx};

	return dwarf_create(&options, err, out);
}

static int create_source(struct image *image, struct err *err, struct dwarf_source **out)
{
	const struct dwarf_source_options options = {.open = open_dwarf, .ctx = image};

	return dwarf_source_create(&options, err, out);
}

/* The command makes l.so of the text in the file `name`. */
static void start(struct fixture *f, const char *name, const char *text, const char *command)
{
	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, name, text);
	scratch_run(&f->scratch, "%s", command);
	f->image = scratch_image(&f->scratch, "l.so");
	assert_int_equal(create_source(f->image, NULL, &f->source), 0);
}

static void finish(struct fixture *f)
{
	dwarf_source_destroy(f->source);
	image_destroy(f->image);
	vec_deinit(&f->calls);
	scratch_deinit(&f->scratch);
}

/* The address of a symbol, or 0. */
static uint64_t address_of(const struct fixture *f, const char *name, uint64_t *size)
{
	return libelf_symbol(f->image, name, size);
}

/* True when some address of the symbol has the call at the given place, counted from the function outwards. */
static bool has_call(struct fixture *f, const char *symbol, size_t depth, const char *name, uint32_t line)
{
	uint64_t size = 0, at = address_of(f, symbol, &size);

	assert_true(at && size);
	for (uint64_t end = at + size; at < end; at++) {
		const struct call *call;

		if (!dwarf_source_find(f->source, at, &f->calls) || f->calls.len <= depth)
			continue;
		call = &f->calls.data[f->calls.len - 1 - depth];
		if (call->name && strcmp(call->name, name) == 0 && call->line == line)
			return true;
	}
	return false;
}

static const char nested_c[] = "static volatile int sink;\n"
			       "static inline __attribute__((always_inline)) void leaf(int x)\n"
			       "{\n"
			       "	sink = x;\n" /* 4 */
			       "}\n"
			       "static inline __attribute__((always_inline)) void middle(int x)\n"
			       "{\n"
			       "	for (int i = 0; i < x; i++) {\n"
			       "		int y = i * 3;\n"
			       "		leaf(y);\n" /* 10 */
			       "	}\n"
			       "}\n"
			       "void outer(int x)\n"
			       "{\n"
			       "	middle(x);\n" /* 15 */
			       "	sink = 0;\n"  /* 16 */
			       "}\n"
			       "int unused(void) { return sink; }\n";

static void test_inlined_calls(void **state)
{
	struct fixture f;
	uint64_t size = 0, at;

	start(&f, "l.c", nested_c, "cc -g -O2 -shared -fPIC -o l.so l.c");
	assert_true(has_call(&f, "outer", 0, "outer", 16));
	assert_true(has_call(&f, "outer", 0, "outer", 15));
	assert_true(has_call(&f, "outer", 1, "middle", 10));
	assert_true(has_call(&f, "outer", 2, "leaf", 4));
	/* Every call has its file, the function itself its start. */
	at = address_of(&f, "outer", &size);
	for (uint64_t here = at; here < at + size; here++) {
		assert_true(dwarf_source_find(f.source, here, &f.calls));
		assert_in_range(f.calls.len, 1, 3);
		for (size_t i = 0; i < f.calls.len; i++) {
			bool outermost = i + 1 == f.calls.len;

			assert_int_equal(f.calls.data[i].start, outermost ? at : 0);
			if (f.calls.data[i].line)
				assert_non_null(strstr(f.calls.data[i].file, "/l.c"));
		}
		assert_string_equal(f.calls.data[f.calls.len - 1].name, "outer");
	}
	finish(&f);
}

static void test_outside_of_all(void **state)
{
	static const uint64_t outside[] = {0, 1, 0x10, UINT64_MAX, UINT64_C(1) << 63};
	struct fixture f;
	struct span text;

	start(&f, "l.c", nested_c, "cc -g -O2 -shared -fPIC -o l.so l.c");
	text = image_section(f.image, ".text");
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		assert_true(vec_push(&f.calls, (struct call){.name = "left over"}));
		assert_false(dwarf_source_find(f.source, outside[i], &f.calls));
		assert_int_equal(f.calls.len, 0);
	}
	assert_false(dwarf_source_find(f.source, text.vaddr + text.len, &f.calls));
	finish(&f);
}

/* The linker leaves functions that it dropped at address 0, where they must not be found. */
static void test_dropped_functions(void **state)
{
	struct fixture f;
	uint64_t size;

	start(&f, "l.c", nested_c,
	      "printf '{ global: outer; local: *; };' > map && cc -g -O2 -shared -fPIC -nostdlib -ffunction-sections "
	      "-Wl,--gc-sections -Wl,--version-script=map -o l.so l.c");
	assert_int_equal(address_of(&f, "unused", &size), 0);
	assert_true(has_call(&f, "outer", 2, "leaf", 4));
	for (uint64_t at = 0; at < 0x40; at++)
		assert_false(dwarf_source_find(f.source, at, &f.calls));
	finish(&f);
}

/* A function in two pieces: the cold one is as much of it as the other, and is not where it starts. */
static void test_function_in_pieces(void **state)
{
	struct fixture f;
	uint64_t size, hot, cold;

	start(&f, "l.c",
	      "extern void fail(int) __attribute__((cold, noreturn));\n"
	      "int parts(int x)\n"
	      "{\n"
	      "	if (__builtin_expect(x > 1000, 0))\n"
	      "		fail(x);\n"
	      "	return x * 7;\n"
	      "}\n",
	      "cc -g -O2 -freorder-blocks-and-partition -shared -fPIC -o l.so l.c");
	hot = address_of(&f, "parts", &size);
	assert_true(dwarf_source_find(f.source, hot, &f.calls));
	cold = address_of(&f, "parts.cold", &size);
	if (!cold) {
		print_message("skipped: this compiler keeps functions in one piece\n");
		finish(&f);
		skip();
	}
	assert_true(dwarf_source_find(f.source, cold, &f.calls));
	assert_int_equal(f.calls.len, 1);
	assert_string_equal(f.calls.data[0].name, "parts");
	assert_true(f.calls.data[0].start == hot || f.calls.data[0].start == 0); /* DWARF need not tell */
	finish(&f);
}

/* Functions may be anywhere in the tree: in namespaces, in classes, in other functions. */
static void test_functions_in_scopes(void **state)
{
	struct fixture f;

	scratch_needs("c++");
	start(&f, "l.cc",
	      "static volatile int sink;\n"
	      "namespace a { namespace { __attribute__((noinline, used)) void deep() { sink = 2; } } }\n"
	      "struct outer {\n"
	      "	struct inner { __attribute__((noinline)) void method() { sink = 4; } };\n"
	      "};\n"
	      "void use()\n"
	      "{\n"
	      "	{ auto lambda = []() __attribute__((noinline, used)) { sink = 8; }; lambda(); }\n"
	      "	outer::inner().method();\n"
	      "	a::deep();\n"
	      "}\n",
	      "c++ -g -O1 -shared -fPIC -o l.so l.cc");
	assert_true(has_call(&f, "_ZN1a12_GLOBAL__N_14deepEv", 0, "deep", 2));
	assert_true(has_call(&f, "_ZN5outer5inner6methodEv", 0, "method", 4));
	assert_string_equal(f.calls.data[0].linkage, "_ZN5outer5inner6methodEv");
	assert_true(has_call(&f, "_ZZ3usevENKUlvE_clEv", 0, "operator()", 8));
	finish(&f);
}

/* A function inside of a block of another one: an extension of GNU C. */
static void test_function_in_a_block(void **state)
{
	static const char text[] = "volatile int sink;\n"
				   "void outer(int x)\n"
				   "{\n"
				   "	for (int i = 0; i < x; i++) {\n"
				   "		__attribute__((noinline)) void in_block(void) { sink = i; }\n"
				   "		in_block();\n"
				   "	}\n"
				   "}\n";
	struct fixture f;
	struct span code;
	bool found = false;

	if (system("cc --version 2>/dev/null | grep -q 'Free Software Foundation'") != 0) {
		print_message("skipped: cc is not GNU C\n");
		skip();
	}
	start(&f, "l.c", text, "cc -g -O0 -shared -fPIC -o l.so l.c");
	code = image_section(f.image, ".text");
	for (uint64_t at = code.vaddr; at < code.vaddr + code.len; at++)
		found |= dwarf_source_find(f.source, at, &f.calls) && f.calls.data[0].name &&
			 strcmp(f.calls.data[0].name, "in_block") == 0 && f.calls.data[0].line == 5;
	assert_true(found);
	finish(&f);
}

/* An assembler tells lines, but labels are no functions to it. */
static void test_lines_only(void **state)
{
	struct fixture f;
	struct span text;

	start(&f, "l.s",
	      "	.text\n"
	      "label:\n"
	      "	nop\n"
	      "	nop\n",
	      "cc -g -shared -nostdlib -o l.so l.s");
	text = image_section(f.image, ".text");
	assert_true(dwarf_source_find(f.source, text.vaddr, &f.calls));
	assert_int_equal(f.calls.len, 1);
	assert_null(f.calls.data[0].name);
	assert_null(f.calls.data[0].linkage);
	assert_int_equal(f.calls.data[0].start, 0);
	assert_int_equal(f.calls.data[0].line, 3);
	assert_non_null(strstr(f.calls.data[0].file, "l.s"));
	finish(&f);
}

/* Units of several files, each with its own lines. */
static void test_several_units(void **state)
{
	struct fixture f;

	start(&f, "a.c", "int in_a(int x) { return x + 1; }\n",
	      "printf '\\n\\nint in_b(int x) { return x + 2; }\\n' > b.c && cc -g -O1 -shared -fPIC -o l.so a.c b.c");
	assert_true(has_call(&f, "in_a", 0, "in_a", 1));
	assert_non_null(strstr(f.calls.data[0].file, "/a.c"));
	assert_true(has_call(&f, "in_b", 0, "in_b", 3));
	assert_non_null(strstr(f.calls.data[0].file, "/b.c"));
	assert_false(has_call(&f, "in_b", 0, "in_a", 1));
	finish(&f);
}

static void test_none(void **state)
{
	struct dwarf_source *source = NULL;
	struct err err = {0};
	struct elfmake e;
	struct image *image;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "x", 1);
	image = elfmake_image(&e);
	assert_int_equal(create_source(image, &err, &source), -ENOENT);
	assert_non_null(strstr(err.msg, ".debug_info"));
	assert_null(source);
	dwarf_source_destroy(NULL);
	image_destroy(image);
	elfmake_deinit(&e);
}

/* Bytes that are no DWARF: refused, or without anything in them. */
static void test_garbage(void **state)
{
	uint64_t seed = 1;

	for (int round = 0; round < 100; round++) {
		struct dwarf_source *source = NULL;
		struct calls calls = {0};
		uint8_t bytes[200];
		struct elfmake e;
		struct image *image;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			bytes[i] = (uint8_t)(seed >> 56);
		}
		if (round % 2) /* a header that makes sense, at least */
			memcpy(bytes, "\xc4\0\0\0\x04\0\0\0\0\0\x08\x01", 12);
		elfmake_init(&e, EM_X86_64);
		elfmake_section(&e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, bytes, sizeof(bytes));
		elfmake_section(&e, ".debug_abbrev", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, bytes + 12,
				sizeof(bytes) - 12);
		image = elfmake_image(&e);
		if (create_source(image, NULL, &source) == 0)
			dwarf_source_find(source, 0x1000, &calls);
		dwarf_source_destroy(source);
		vec_deinit(&calls);
		image_destroy(image);
		elfmake_deinit(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined_calls),
		cmocka_unit_test(test_outside_of_all),
		cmocka_unit_test(test_dropped_functions),
		cmocka_unit_test(test_function_in_pieces),
		cmocka_unit_test(test_functions_in_scopes),
		cmocka_unit_test(test_function_in_a_block),
		cmocka_unit_test(test_lines_only),
		cmocka_unit_test(test_several_units),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests_name("source_dwarf", tests, NULL, NULL);
}
