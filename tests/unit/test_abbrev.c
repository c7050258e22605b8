/* SPDX-License-Identifier: MIT */
#include "dwarfmake.h"

#include "dwarf/abbrev.h"

static const struct form_sizes sizes = {.address = 8, .offset = 4, .version = 5};

static void read_table(struct abbrevs *abbrevs, const struct dwarfmake *m, size_t len, uint64_t until)
{
	*abbrevs = (struct abbrevs){0};
	assert_true(abbrevs_read(abbrevs, cursor_init(m->data, len), &sizes, until));
}

static const int function_attrs[] = {
	DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr, DW_AT_decl_line, DW_FORM_data1, 0};
static const int variable_attrs[] = {DW_AT_name, DW_FORM_string, DW_AT_sibling, DW_FORM_ref4, 0};
static const int constant_attrs[] = {DW_AT_call_file, DW_FORM_implicit_const, -70, DW_AT_decl_line, DW_FORM_data2, 0};

static void make(struct dwarfmake *m, uint64_t first)
{
	dw_abbrev(m, first, DW_TAG_subprogram, true, function_attrs);
	dw_abbrev(m, first + 1, DW_TAG_variable, true, variable_attrs);
	dw_abbrev(m, first + 2, DW_TAG_inlined_subroutine, false, constant_attrs);
	dw_uleb(m, 0);
}

static void check(const struct abbrevs *abbrevs, uint64_t first)
{
	const struct abbrev *function = abbrevs_find(abbrevs, first), *variable = abbrevs_find(abbrevs, first + 1);
	const struct abbrev *inlined = abbrevs_find(abbrevs, first + 2);

	assert_non_null(function);
	assert_int_equal(function->kind, ABBREV_FUNCTION);
	assert_true(function->has_children);
	assert_int_equal(function->nattrs, 3);
	assert_int_equal(function->fixed_size, 4 + 8 + 1);
	assert_int_equal(abbrevs->attrs.data[function->first_attr].attr, ATTR_NAME);
	assert_int_equal(abbrevs->attrs.data[function->first_attr + 1].attr, ATTR_LOW_PC);
	assert_int_equal(abbrevs->attrs.data[function->first_attr + 1].size, 8);
	assert_int_equal(abbrevs->attrs.data[function->first_attr + 2].attr, ATTR_IGNORED);
	assert_non_null(variable);
	assert_int_equal(variable->kind, ABBREV_DATA);
	assert_int_equal(variable->fixed_size, ABBREV_VARIES);
	assert_true(variable->has_sibling);
	assert_non_null(inlined);
	assert_int_equal(inlined->kind, ABBREV_INLINED);
	assert_false(inlined->has_children);
	assert_int_equal(inlined->nattrs, 2);
	assert_int_equal(inlined->fixed_size, 2);
	assert_int_equal(abbrevs->attrs.data[inlined->first_attr].implicit, -70);
	assert_null(abbrevs_find(abbrevs, first - 1));
	assert_null(abbrevs_find(abbrevs, first + 3));
	assert_null(abbrevs_find(abbrevs, UINT64_MAX));
	assert_null(abbrevs_find(abbrevs, 0));
}

static void test_dense(void **state)
{
	struct dwarfmake m = {0};
	struct abbrevs abbrevs;

	make(&m, 1);
	read_table(&abbrevs, &m, m.len, 0);
	assert_true(abbrevs.dense);
	check(&abbrevs, 1);
	abbrevs_deinit(&abbrevs);
}

static void test_sparse(void **state)
{
	static const uint64_t firsts[] = {2, 1000, UINT64_C(1) << 40};
	struct abbrevs abbrevs;

	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		struct dwarfmake m = {0};

		make(&m, firsts[i]);
		read_table(&abbrevs, &m, m.len, 0);
		assert_false(abbrevs.dense);
		check(&abbrevs, firsts[i]);
		abbrevs_deinit(&abbrevs);
	}
}

/* Codes in any order. */
static void test_unordered(void **state)
{
	static const uint64_t codes[] = {9, 3, 7, 1, 1000};
	static const int none[] = {0};
	struct dwarfmake m = {0};
	struct abbrevs abbrevs;

	for (size_t i = 0; i < 5; i++)
		dw_abbrev(&m, codes[i], 0x100 + codes[i], false, none);
	dw_uleb(&m, 0);
	read_table(&abbrevs, &m, m.len, 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(abbrevs_find(&abbrevs, codes[i])->tag, 0x100 + codes[i]);
	assert_null(abbrevs_find(&abbrevs, 2));
	abbrevs_deinit(&abbrevs);
}

static void test_until(void **state)
{
	struct dwarfmake m = {0};
	struct abbrevs abbrevs;

	make(&m, 1);
	read_table(&abbrevs, &m, m.len, 2);
	assert_int_equal(abbrevs.len, 1);
	assert_non_null(abbrevs_find(&abbrevs, 2));
	assert_null(abbrevs_find(&abbrevs, 1));
	assert_null(abbrevs_find(&abbrevs, 3));
	assert_in_range(abbrevs.bytes, 1, m.len - 1);
	abbrevs_deinit(&abbrevs);
	read_table(&abbrevs, &m, m.len, 77); /* not there: all of it was read in search of it */
	assert_int_equal(abbrevs.len, 0);
	assert_int_equal(abbrevs.bytes, m.len);
	abbrevs_deinit(&abbrevs);
}

/* A table that is cut short keeps what came before the cut. */
static void test_truncated(void **state)
{
	struct dwarfmake m = {0};
	struct abbrevs abbrevs;
	size_t before = 0;

	make(&m, 1);
	for (size_t len = 0; len <= m.len; len++) {
		read_table(&abbrevs, &m, len, 0);
		assert_in_range(abbrevs.len, before, 3);
		before = abbrevs.len;
		for (size_t i = 0; i < abbrevs.len; i++)
			assert_int_equal(abbrevs.data[i].nattrs, i == 0 ? 3 : 2);
		abbrevs_deinit(&abbrevs);
	}
	assert_int_equal(before, 3);
}

/* More attributes than any entry has: entries of it would be slow to read for their size. */
static void test_too_many_attributes(void **state)
{
	struct dwarfmake m = {0};
	struct abbrevs abbrevs = {0};

	dw_uleb(&m, 1);
	dw_uleb(&m, DW_TAG_subprogram);
	dw_u8(&m, 0);
	for (unsigned i = 0; i < 1000; i++) {
		dw_uleb(&m, DW_AT_external);
		dw_uleb(&m, DW_FORM_flag_present);
	}
	assert_false(abbrevs_read(&abbrevs, cursor_init(m.data, m.len), &sizes, 0));
	abbrevs_deinit(&abbrevs);
}

static void test_form_sizes(void **state)
{
	static const struct form_sizes wide = {.address = 4, .offset = 8, .version = 2};
	static const struct form_sizes three = {.address = 4, .offset = 8, .version = 3};

	assert_int_equal(form_size(DW_FORM_addr, &sizes), 8);
	assert_int_equal(form_size(DW_FORM_addr, &wide), 4);
	assert_int_equal(form_size(DW_FORM_strp, &sizes), 4);
	assert_int_equal(form_size(DW_FORM_sec_offset, &wide), 8);
	assert_int_equal(form_size(DW_FORM_ref_addr, &wide), 4); /* of an address, in DWARF 2 */
	assert_int_equal(form_size(DW_FORM_ref_addr, &three), 8);
	assert_int_equal(form_size(DW_FORM_GNU_strp_alt, &three), 8);
	assert_int_equal(form_size(DW_FORM_flag_present, &sizes), 0);
	assert_int_equal(form_size(DW_FORM_data16, &sizes), 16);
	assert_int_equal(form_size(DW_FORM_udata, &sizes), -1);
	assert_int_equal(form_size(0x7777, &sizes), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense),      cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_unordered),  cmocka_unit_test(test_until),
		cmocka_unit_test(test_truncated),  cmocka_unit_test(test_too_many_attributes),
		cmocka_unit_test(test_form_sizes),
	};

	return cmocka_run_group_tests_name("abbrev", tests, NULL, NULL);
}
