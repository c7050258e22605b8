/* SPDX-License-Identifier: MIT */
/* Trees of functions made by hand; test_dwarf.c has those of compilers. */
#include "dwarfmake.h"

#include "dwarf/functions.h"

static const struct code_bounds code = {.start = 0x1000, .end = 0x10000};

/* Abbreviations */
enum {
	ROOT = 1,
	FUNCTION, /* name, low pc, high pc */
	INLINED,  /* origin, low pc, high pc, line of the call */
	BLOCK,
	DECLARATION,   /* name */
	STRUCTURE,     /* sibling */
	FUNCTION_HERE, /* name, low pc, high pc; no children */
	VARIABLE,      /* sibling; with children */
};

struct fixture {
	struct dwarfmake info, abbrev;
	struct dwarf_file file;
	struct unit_view view;
	struct functions functions;
	size_t begin;
};

static void put_abbrevs(struct dwarfmake *m)
{
	static const int root[] = {DW_AT_language, DW_FORM_data1, 0};
	static const int function[] = {
		DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data2, 0};
	static const int inlined[] = {DW_AT_abstract_origin, DW_FORM_ref2,  DW_AT_low_pc,
				      DW_FORM_addr,          DW_AT_high_pc, DW_FORM_data2,
				      DW_AT_call_line,       DW_FORM_data1, 0};
	static const int none[] = {0};
	static const int declaration[] = {DW_AT_name, DW_FORM_string, 0};
	static const int sibling[] = {DW_AT_sibling, DW_FORM_ref2, 0};

	dw_abbrev(m, ROOT, DW_TAG_compile_unit, true, root);
	dw_abbrev(m, FUNCTION, DW_TAG_subprogram, true, function);
	dw_abbrev(m, INLINED, DW_TAG_inlined_subroutine, true, inlined);
	dw_abbrev(m, BLOCK, DW_TAG_lexical_block, true, none);
	dw_abbrev(m, DECLARATION, DW_TAG_subprogram, false, declaration);
	dw_abbrev(m, STRUCTURE, DW_TAG_structure_type, true, sibling);
	dw_abbrev(m, FUNCTION_HERE, DW_TAG_subprogram, false, function);
	dw_abbrev(m, VARIABLE, DW_TAG_variable, true, sibling);
	dw_uleb(m, 0);
}

static void start(struct fixture *f, uint8_t language)
{
	memset(f, 0, sizeof(*f));
	put_abbrevs(&f->abbrev);
	f->begin = dw_begin(&f->info, 4);
	dw_uint(&f->info, 2, 4);
	dw_uint(&f->info, 4, 0);
	dw_u8(&f->info, 8);
	dw_u8(&f->info, ROOT);
	dw_u8(&f->info, language);
}

/* The offset of the entry in the unit. */
static size_t put_function(struct fixture *f, uint8_t kind, const char *name, uint64_t low, uint16_t size)
{
	size_t at = f->info.len;

	dw_u8(&f->info, kind);
	dw_str(&f->info, name);
	dw_uint(&f->info, 8, low);
	dw_uint(&f->info, 2, size);
	return at;
}

static size_t put_inlined(struct fixture *f, size_t origin, uint64_t low, uint16_t size, uint8_t line)
{
	size_t at = f->info.len;

	dw_u8(&f->info, INLINED);
	dw_uint(&f->info, 2, origin);
	dw_uint(&f->info, 8, low);
	dw_uint(&f->info, 2, size);
	dw_u8(&f->info, line);
	return at;
}

static size_t put_declaration(struct fixture *f, const char *name)
{
	size_t at = f->info.len;

	dw_u8(&f->info, DECLARATION);
	dw_str(&f->info, name);
	return at;
}

static void close_entry(struct fixture *f)
{
	dw_u8(&f->info, 0);
}

static void read_functions(struct fixture *f)
{
	struct dwarf_unit unit = {.dies = 11, .end = f->info.len, .sizes = {.address = 8, .offset = 4, .version = 4}};
	struct entry root;

	dw_end(&f->info, f->begin, 4);
	f->file = (struct dwarf_file){.info = dw_span(&f->info), .abbrev = dw_span(&f->abbrev)};
	unit_view_deinit(&f->view);
	functions_deinit(&f->functions);
	assert_true(unit_view_init(&f->view, &f->file, &unit, false, &root));
	f->functions = (struct functions){0};
	assert_true(functions_read(&f->functions, &f->view, &code));
}

static void finish(struct fixture *f)
{
	unit_view_deinit(&f->view);
	functions_deinit(&f->functions);
}

static const struct map_scope *scope_at(const struct fixture *f, uint64_t at)
{
	struct unit_map map = {
		.base = code.start,
		.pieces = f->functions.pieces.data,
		.npieces = f->functions.pieces.len,
		.scopes = f->functions.scopes.data,
		.nscopes = f->functions.scopes.len,
	};
	uint32_t scope = unit_map_scope(&map, at);

	return scope == MAP_NONE ? NULL : &f->functions.scopes.data[scope];
}

/* The chain of calls at an address, innermost first, is of these names (offsets of entries), ended by 0. */
static void check_chain(const struct fixture *f, uint64_t at, const size_t *names)
{
	const struct map_scope *scope = scope_at(f, at);

	for (; *names; names++) {
		assert_non_null(scope);
		assert_int_equal(scope->name, *names);
		scope = scope->parent == MAP_NONE ? NULL : &f->functions.scopes.data[scope->parent];
	}
	assert_null(scope);
}

#define CHAIN(f, at, ...) check_chain(f, at, (const size_t[16]){__VA_ARGS__})

static void test_nesting(void **state)
{
	struct fixture f;
	size_t a, b, outer, other;

	start(&f, DW_LANG_C11);
	a = put_declaration(&f, "a");
	b = put_declaration(&f, "b");
	outer = put_function(&f, FUNCTION, "outer", 0x2000, 0x100);
	put_inlined(&f, a, 0x2010, 0x40, 11);
	dw_u8(&f.info, BLOCK);
	put_inlined(&f, b, 0x2020, 0x10, 12);
	close_entry(&f);
	close_entry(&f); /* the block */
	close_entry(&f);
	put_inlined(&f, b, 0x2080, 0x10, 13);
	close_entry(&f);
	close_entry(&f);
	other = put_function(&f, FUNCTION_HERE, "other", 0x3000, 0x10);
	close_entry(&f);
	read_functions(&f);
	CHAIN(&f, 0x1fff);
	CHAIN(&f, 0x2000, outer);
	CHAIN(&f, 0x2010, a, outer);
	CHAIN(&f, 0x201f, a, outer);
	CHAIN(&f, 0x2020, b, a, outer);
	CHAIN(&f, 0x2030, a, outer);
	CHAIN(&f, 0x2050, outer);
	CHAIN(&f, 0x2080, b, outer);
	CHAIN(&f, 0x20ff, outer);
	CHAIN(&f, 0x2100);
	CHAIN(&f, 0x3000, other);
	assert_int_equal(scope_at(&f, 0x2020)->at, 12); /* the line of the call */
	assert_int_equal(scope_at(&f, 0x2080)->at, 13);
	assert_int_equal(scope_at(&f, 0x2000)->at, 0x2000 - code.start); /* where it starts */
	finish(&f);
}

/* Inlined calls side by side that overlap, as compilers make them: the deeper chain is seen, then the later one. */
static void test_siblings_that_overlap(void **state)
{
	struct fixture f;
	size_t a, b, c, outer;

	start(&f, DW_LANG_C11);
	a = put_declaration(&f, "a");
	b = put_declaration(&f, "b");
	c = put_declaration(&f, "c");
	outer = put_function(&f, FUNCTION, "outer", 0x2000, 0x100);
	put_inlined(&f, a, 0x2010, 0x40, 1);
	put_inlined(&f, b, 0x2010, 0x20, 2);
	close_entry(&f);
	close_entry(&f);
	put_inlined(&f, c, 0x2010, 0x40, 3); /* as large as a, but not as deep as b */
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	read_functions(&f);
	CHAIN(&f, 0x2010, b, a, outer);
	CHAIN(&f, 0x202f, b, a, outer);
	CHAIN(&f, 0x2030, c, outer);
	CHAIN(&f, 0x2050, outer);
	finish(&f);
}

/* What was inlined into a call that has no code left is still inlined there. */
static void test_inlined_without_code(void **state)
{
	struct fixture f;
	size_t a, b, outer;

	start(&f, DW_LANG_C11);
	a = put_declaration(&f, "a");
	b = put_declaration(&f, "b");
	outer = put_function(&f, FUNCTION, "outer", 0x2000, 0x100);
	put_inlined(&f, a, 0x2010, 0, 1);
	put_inlined(&f, b, 0x2010, 0x20, 2);
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	read_functions(&f);
	CHAIN(&f, 0x200f, outer);
	CHAIN(&f, 0x2010, b, a, outer);
	CHAIN(&f, 0x2030, outer);
	finish(&f);
}

/* A function in another one (GNU C, Ada, Pascal) is no inlined call of it. */
static void test_nested_function(void **state)
{
	struct fixture f;
	size_t outer, inner, a;

	start(&f, DW_LANG_C11);
	a = put_declaration(&f, "a");
	outer = put_function(&f, FUNCTION, "outer", 0x2000, 0x100);
	dw_u8(&f.info, BLOCK);
	inner = put_function(&f, FUNCTION, "inner", 0x3000, 0x10);
	put_inlined(&f, a, 0x3004, 4, 9);
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	read_functions(&f);
	CHAIN(&f, 0x2000, outer);
	CHAIN(&f, 0x3000, inner);
	CHAIN(&f, 0x3004, a, inner);
	finish(&f);
}

/* What the linker dropped is nowhere, and neither is what was inlined into it, wherever that claims to be. */
static void test_dropped(void **state)
{
	static const uint64_t dropped[] = {0, 1, UINT64_MAX - 0x100, 0x10000};

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		struct fixture f;
		size_t a, kept;

		start(&f, DW_LANG_C11);
		a = put_declaration(&f, "a");
		put_function(&f, FUNCTION, "gone", dropped[i], 0x3000);
		put_inlined(&f, a, 0x2000, 0x100, 1);
		close_entry(&f);
		close_entry(&f);
		kept = put_function(&f, FUNCTION_HERE, "kept", 0x2000, 0x10);
		close_entry(&f);
		read_functions(&f);
		CHAIN(&f, 0x2000, kept);
		CHAIN(&f, 0x2010);
		assert_int_equal(f.functions.scopes.len, 1);
		finish(&f);
	}
}

/* An inlined call that is in no function, and a function without code. */
static void test_out_of_place(void **state)
{
	struct fixture f;
	size_t a;

	start(&f, DW_LANG_C11);
	a = put_declaration(&f, "a");
	put_inlined(&f, a, 0x2000, 0x100, 1);
	close_entry(&f);
	put_function(&f, FUNCTION, "abstract", 0x3000, 0);
	put_inlined(&f, a, 0x3000, 0x100, 1);
	close_entry(&f);
	close_entry(&f);
	close_entry(&f);
	read_functions(&f);
	assert_int_equal(f.functions.scopes.len, 0);
	assert_int_equal(f.functions.pieces.len, 0);
	finish(&f);
}

/* Ranges beyond the end of the code are cut there. */
static void test_cut_at_the_end(void **state)
{
	struct fixture f;
	size_t last;

	start(&f, DW_LANG_C11);
	last = put_function(&f, FUNCTION_HERE, "last", 0xfff0, 0xffff);
	close_entry(&f);
	read_functions(&f);
	CHAIN(&f, 0xffff, last);
	CHAIN(&f, 0x10000);
	finish(&f);
}

/* The entry pc of DWARF 5 may be an offset. */
static void test_entry_pc(void **state)
{
	static const int attrs[] = {DW_AT_name,     DW_FORM_string, DW_AT_low_pc,
				    DW_FORM_addr,   DW_AT_high_pc,  DW_FORM_data2,
				    DW_AT_entry_pc, DW_FORM_data1,  0};
	struct fixture f;

	start(&f, DW_LANG_C11);
	f.abbrev.len--;
	dw_abbrev(&f.abbrev, 20, DW_TAG_subprogram, false, attrs);
	dw_uleb(&f.abbrev, 0);
	put_function(&f, 20, "f", 0x2000, 0x100);
	dw_u8(&f.info, 0x40);
	close_entry(&f);
	read_functions(&f);
	assert_int_equal(scope_at(&f, 0x2000)->at, 0x2040 - code.start);
	finish(&f);
}

static void test_siblings_links(void **state)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		bool plain = kind & 1, backwards = kind & 2;
		struct fixture f;
		size_t method, variable, after, links[2];

		start(&f, plain ? DW_LANG_C99 : DW_LANG_C_plus_plus_11);
		links[0] = f.info.len + 1;
		dw_u8(&f.info, STRUCTURE);
		dw_uint(&f.info, 2, 0);
		method = put_function(&f, FUNCTION_HERE, "method", 0x2000, 0x10);
		close_entry(&f);
		variable = f.info.len;
		links[1] = f.info.len + 1;
		dw_u8(&f.info, VARIABLE);
		dw_uint(&f.info, 2, 0);
		put_function(&f, FUNCTION_HERE, "never", 0x3000, 0x10);
		close_entry(&f);
		after = put_function(&f, FUNCTION_HERE, "after", 0x4000, 0x10);
		close_entry(&f);
		dw_uint_at(&f.info, links[0], 2, backwards ? 11 : variable);
		dw_uint_at(&f.info, links[1], 2, backwards ? 11 : after);
		read_functions(&f);
		/* C has no functions in its structures: they are left out. A link backwards is not followed. */
		if (plain && !backwards)
			CHAIN(&f, 0x2000);
		else
			CHAIN(&f, 0x2000, method);
		if (!backwards)
			CHAIN(&f, 0x3000);
		CHAIN(&f, 0x4000, after);
		finish(&f);
	}
}

/* Cut at any byte: what is found is what the whole unit has there, or nothing. */
static void test_truncated(void **state)
{
	struct fixture f;
	size_t a, outer, other, whole;

	start(&f, DW_LANG_C11);
	a = put_declaration(&f, "a");
	outer = put_function(&f, FUNCTION, "outer", 0x2000, 0x100);
	put_inlined(&f, a, 0x2010, 0x40, 11);
	close_entry(&f);
	close_entry(&f);
	other = put_function(&f, FUNCTION_HERE, "other", 0x3000, 0x10);
	close_entry(&f);
	whole = f.info.len;
	for (f.info.len = 13; f.info.len <= whole; f.info.len++) {
		read_functions(&f);
		if (scope_at(&f, 0x2000))
			CHAIN(&f, 0x2000, outer);
		if (scope_at(&f, 0x2010) && scope_at(&f, 0x2010)->parent != MAP_NONE)
			CHAIN(&f, 0x2010, a, outer);
		if (scope_at(&f, 0x3000))
			CHAIN(&f, 0x3000, other);
		assert_int_equal(scope_at(&f, 0x3000) != NULL, f.info.len >= whole - 1);
	}
	finish(&f);
}

/* Deeper than any program: the rest is lost, nothing else. */
static void test_too_deep(void **state)
{
	struct fixture f;
	size_t first;

	start(&f, DW_LANG_C11);
	first = put_function(&f, FUNCTION_HERE, "first", 0x2000, 0x10);
	for (unsigned i = 0; i < 1000; i++)
		dw_u8(&f.info, BLOCK);
	put_function(&f, FUNCTION_HERE, "deep", 0x3000, 0x10);
	read_functions(&f);
	CHAIN(&f, 0x2000, first);
	CHAIN(&f, 0x3000);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_siblings_that_overlap),
		cmocka_unit_test(test_inlined_without_code),
		cmocka_unit_test(test_nested_function),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_out_of_place),
		cmocka_unit_test(test_cut_at_the_end),
		cmocka_unit_test(test_entry_pc),
		cmocka_unit_test(test_siblings_links),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_too_deep),
	};

	return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
