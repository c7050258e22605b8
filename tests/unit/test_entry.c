/* SPDX-License-Identifier: MIT */
#include "dwarfmake.h"

#include "dwarf/entry.h"

/* The ways to write numbers: what every test goes through. */
static const struct way {
	bool big_endian;
	uint8_t offset; /* size */
	uint8_t address;
	uint16_t version;
} ways[] = {
	{false, 4, 8, 5}, {true, 4, 8, 5}, {false, 8, 8, 5}, {true, 8, 4, 5},
	{false, 4, 4, 4}, {true, 8, 8, 3}, {false, 4, 8, 2},
};

enum { NWAYS = sizeof(ways) / sizeof(ways[0]) };

struct fixture {
	struct way way;
	struct dwarfmake info, abbrev, str, line_str, str_offsets, addr, alt_str;
	struct dwarf_file file, alt;
	struct dwarf_unit unit;
	size_t begin; /* of the unit's length */
};

/* A header; entries follow, then finish(). */
static void start(struct fixture *f, const struct way *way)
{
	struct dwarfmake *m = &f->info;

	memset(f, 0, sizeof(*f));
	f->way = *way;
	f->info.big_endian = f->str_offsets.big_endian = f->addr.big_endian = way->big_endian;
	dw_bytes(m, "padding", 8); /* another unit, so that offsets in the unit are not those in the section */
	f->unit.offset = m->len;
	f->begin = dw_begin(m, way->offset);
	dw_uint(m, 2, way->version);
	if (way->version == 5) {
		dw_u8(m, DW_UT_compile);
		dw_u8(m, way->address);
		dw_uint(m, way->offset, 0);
	} else {
		dw_uint(m, way->offset, 0);
		dw_u8(m, way->address);
	}
	f->unit.dies = m->len;
	f->unit.sizes = (struct form_sizes){.address = way->address, .offset = way->offset, .version = way->version};
}

static void finish(struct fixture *f)
{
	dw_end(&f->info, f->begin, f->way.offset);
	dw_uleb(&f->abbrev, 0);
	f->unit.end = f->info.len;
	f->file = (struct dwarf_file){
		.info = dw_span(&f->info),
		.abbrev = dw_span(&f->abbrev),
		.str = dw_span(&f->str),
		.line_str = dw_span(&f->line_str),
		.str_offsets = dw_span(&f->str_offsets),
		.addr = dw_span(&f->addr),
		.big_endian = f->way.big_endian,
		.alt = &f->alt,
	};
	f->alt.str = dw_span(&f->alt_str);
}

/* One attribute, DW_AT_name, of the form, as root of the unit; its bytes must be in `info` behind the code. */
static bool read_one(struct fixture *f, int form, struct unit_view *view, struct entry *entry)
{
	const int attrs[] = {DW_AT_name, form, 0};

	f->abbrev.len = 0;
	dw_abbrev(&f->abbrev, 1, DW_TAG_compile_unit, false, attrs);
	finish(f);
	return unit_view_init(view, &f->file, &f->unit, false, entry);
}

/* All bytes are needed: with one less the entry is damaged, and nothing outside is read. */
static void check_cuts(struct fixture *f, int form, size_t value_len)
{
	struct unit_view view;
	struct entry entry;
	uint64_t end = f->unit.end;

	for (size_t cut = 1; cut <= value_len; cut++) {
		f->unit.end = end - cut;
		f->file.info.len = f->unit.end; /* so that a sanitizer would see reads behind it */
		assert_false(unit_view_init(&view, &f->file, &f->unit, false, &entry));
		unit_view_deinit(&view);
	}
	f->unit.end = end;
	f->file.info.len = end;
}

static void test_numbers(void **state)
{
	static const struct {
		int form;
		unsigned size;
		bool number; /* value_number() takes it */
	} forms[] = {
		{DW_FORM_data1, 1, true},     {DW_FORM_data2, 2, true}, {DW_FORM_data4, 4, true},
		{DW_FORM_data8, 8, true},     {DW_FORM_flag, 1, false}, {DW_FORM_ref1, 1, false},
		{DW_FORM_ref2, 2, false},     {DW_FORM_ref4, 4, false}, {DW_FORM_ref8, 8, false},
		{DW_FORM_ref_sig8, 8, false},
	};

	for (size_t i = 0; i < NWAYS * sizeof(forms) / sizeof(forms[0]); i++) {
		const unsigned size = forms[i / NWAYS].size;
		const uint64_t expected = UINT64_C(0x8182838485868788) >> (64 - 8 * size);
		struct unit_view view;
		struct entry entry;
		struct fixture f;
		uint64_t number = 0;

		start(&f, &ways[i % NWAYS]);
		dw_uleb(&f.info, 1);
		dw_uint(&f.info, size, expected);
		assert_true(read_one(&f, forms[i / NWAYS].form, &view, &entry));
		assert_true(entry_has(&entry, ATTR_NAME));
		assert_false(entry_has(&entry, ATTR_LOW_PC));
		assert_int_equal(entry_value(&entry, ATTR_NAME)->number, expected);
		assert_int_equal(value_number(entry_value(&entry, ATTR_NAME), &number), forms[i / NWAYS].number);
		assert_false(value_number(entry_value(&entry, ATTR_LOW_PC), &number));
		unit_view_deinit(&view);
		check_cuts(&f, forms[i / NWAYS].form, size);
	}
}

static void test_sized_by_the_unit(void **state)
{
	for (size_t i = 0; i < NWAYS; i++) {
		const unsigned offset = ways[i].offset, address = ways[i].address;
		uint64_t number;
		struct unit_view view;
		struct entry entry;
		struct fixture f;

		start(&f, &ways[i]);
		dw_uleb(&f.info, 1);
		dw_uint(&f.info, offset, 0x1234567);
		assert_true(read_one(&f, DW_FORM_sec_offset, &view, &entry));
		assert_true(value_number(entry_value(&entry, ATTR_NAME), &number));
		assert_int_equal(number, 0x1234567);
		unit_view_deinit(&view);
		check_cuts(&f, DW_FORM_sec_offset, offset);

		start(&f, &ways[i]);
		dw_uleb(&f.info, 1);
		dw_uint(&f.info, address, 0x81234567);
		assert_true(read_one(&f, DW_FORM_addr, &view, &entry));
		assert_true(value_address(&view, entry_value(&entry, ATTR_NAME), &number));
		assert_int_equal(number, 0x81234567);
		assert_false(value_number(entry_value(&entry, ATTR_NAME), &number));
		unit_view_deinit(&view);
		check_cuts(&f, DW_FORM_addr, address);
	}
}

static void test_leb(void **state)
{
	static const int64_t values[] = {0, 1, -1, 63, 64, -64, -65, 127, 128, INT32_MAX, INT64_MAX, INT64_MIN};

	for (size_t i = 0; i < NWAYS * sizeof(values) / sizeof(values[0]); i++) {
		const int64_t value = values[i / NWAYS];
		struct unit_view view;
		struct entry entry;
		struct fixture f;
		uint64_t number;
		size_t before;

		start(&f, &ways[i % NWAYS]);
		dw_uleb(&f.info, 1);
		before = f.info.len;
		dw_sleb(&f.info, value);
		assert_true(read_one(&f, DW_FORM_sdata, &view, &entry));
		assert_true(value_number(entry_value(&entry, ATTR_NAME), &number));
		assert_true((int64_t)number == value);
		unit_view_deinit(&view);
		check_cuts(&f, DW_FORM_sdata, f.info.len - before);

		start(&f, &ways[i % NWAYS]);
		dw_uleb(&f.info, 1);
		before = f.info.len;
		dw_uleb(&f.info, (uint64_t)value);
		assert_true(read_one(&f, DW_FORM_udata, &view, &entry));
		assert_true(value_number(entry_value(&entry, ATTR_NAME), &number));
		assert_true(number == (uint64_t)value);
		unit_view_deinit(&view);
		check_cuts(&f, DW_FORM_udata, f.info.len - before);
	}
}

static const int skipped_attrs[] = {DW_AT_location, 0, DW_AT_name, DW_FORM_data1, 0};

/* Blocks, and other values that nobody asks for, are skipped: what is behind them is found. */
static void test_skipped(void **state)
{
	static const struct {
		int form;
		unsigned length_size; /* 0: LEB128; 9: there is none */
		unsigned size;
	} forms[] = {
		{DW_FORM_block, 0, 5},    {DW_FORM_exprloc, 0, 200}, {DW_FORM_block1, 1, 7},
		{DW_FORM_block2, 2, 300}, {DW_FORM_block4, 4, 9},    {DW_FORM_data16, 9, 16},
		{DW_FORM_addrx3, 9, 3},   {DW_FORM_strx3, 9, 3},     {DW_FORM_block, 0, 0},
		{DW_FORM_ref_sup4, 9, 4}, {DW_FORM_ref_sup8, 9, 8},  {DW_FORM_flag_present, 9, 0},
		{DW_FORM_loclistx, 9, 1},
	};

	for (size_t i = 0; i < NWAYS * sizeof(forms) / sizeof(forms[0]); i++) {
		const unsigned size = forms[i / NWAYS].size, length_size = forms[i / NWAYS].length_size;
		int attrs[5];
		struct unit_view view;
		struct entry entry;
		struct fixture f;
		uint64_t number, sibling;
		struct cursor c;
		size_t before;

		memcpy(attrs, skipped_attrs, sizeof(attrs));
		attrs[1] = forms[i / NWAYS].form;
		start(&f, &ways[i % NWAYS]);
		dw_uleb(&f.info, 1);
		before = f.info.len;
		if (length_size == 0)
			dw_uleb(&f.info, size);
		else if (length_size < 9)
			dw_uint(&f.info, length_size, size);
		for (unsigned byte = 0; byte < size; byte++)
			dw_u8(&f.info, 0x41);
		dw_u8(&f.info, 99);
		dw_abbrev(&f.abbrev, 1, DW_TAG_variable, false, attrs);
		finish(&f);
		assert_true(unit_view_init(&view, &f.file, &f.unit, false, &entry));
		assert_true(value_number(entry_value(&entry, ATTR_NAME), &number));
		assert_int_equal(number, 99);
		c = unit_cursor(&view, f.unit.dies);
		assert_int_equal(cursor_uleb(&c), 1);
		assert_true(entry_skip(&view, &c, entry.abbrev, &sibling));
		assert_int_equal(cursor_left(&c), 0);
		assert_int_equal(sibling, 0);
		unit_view_deinit(&view);
		check_cuts(&f, forms[i / NWAYS].form, f.info.len - before);
	}
}

static void check_string(struct fixture *f, int form, const char *expected)
{
	struct unit_view view;
	struct entry entry;
	const char *found;

	assert_true(read_one(f, form, &view, &entry));
	found = value_string(&view, entry_value(&entry, ATTR_NAME));
	if (expected)
		assert_string_equal(found, expected);
	else
		assert_null(found);
	assert_null(value_string(&view, entry_value(&entry, ATTR_LINKAGE_NAME)));
	unit_view_deinit(&view);
}

static void test_strings(void **state)
{
	static const struct {
		int form;
		unsigned size; /* 0: an offset, 9: LEB128 */
		bool index;
		const char *expected;
	} forms[] = {
		{DW_FORM_strp, 0, false, "main"},
		{DW_FORM_line_strp, 0, false, "line"},
		{DW_FORM_GNU_strp_alt, 0, false, "shared"},
		{DW_FORM_strp_sup, 0, false, "shared"},
		{DW_FORM_strx, 9, true, "main"},
		{DW_FORM_GNU_str_index, 9, true, "main"},
		{DW_FORM_strx1, 1, true, "main"},
		{DW_FORM_strx2, 2, true, "main"},
		{DW_FORM_strx3, 3, true, "main"},
		{DW_FORM_strx4, 4, true, "main"},
	};

	for (size_t i = 0; i < NWAYS * sizeof(forms) / sizeof(forms[0]); i++) {
		const struct way *way = &ways[i % NWAYS];
		const unsigned n = (unsigned)(i / NWAYS);

		for (uint64_t beyond = 0; beyond < 2; beyond++) {
			uint64_t value = forms[n].index ? (beyond ? 50 : 2) : (beyond ? 100 : 3);
			struct fixture f;

			start(&f, way);
			dw_bytes(&f.str, "xx\0main\0without end", 19);
			dw_bytes(&f.line_str, "xx\0line", 8);
			dw_bytes(&f.alt_str, "xx\0shared", 10);
			for (uint64_t at = 1; at < 4; at++)
				dw_uint(&f.str_offsets, way->offset, at == 3 ? 3 : 1000);
			dw_uleb(&f.info, 1);
			if (forms[n].size == 9)
				dw_uleb(&f.info, value);
			else
				dw_uint(&f.info, forms[n].size ? forms[n].size : way->offset, value);
			check_string(&f, forms[n].form, beyond ? NULL : forms[n].expected);
		}
	}
}

static void test_string_in_place(void **state)
{
	struct fixture f;

	start(&f, &ways[0]);
	dw_uleb(&f.info, 1);
	dw_str(&f.info, "here");
	check_string(&f, DW_FORM_string, "here");
	check_cuts(&f, DW_FORM_string, 5);

	start(&f, &ways[0]); /* without its end, in .debug_str */
	dw_bytes(&f.str, "xx\0main\0without end", 19);
	dw_uleb(&f.info, 1);
	dw_uint(&f.info, 4, 8);
	check_string(&f, DW_FORM_strp, NULL);

	start(&f, &ways[0]); /* no file that is shared */
	dw_uleb(&f.info, 1);
	dw_uint(&f.info, 4, 0);
	check_string(&f, DW_FORM_GNU_strp_alt, NULL);
}

static void test_addresses_by_index(void **state)
{
	static const struct {
		int form;
		unsigned size;
	} forms[] = {
		{DW_FORM_addrx, 9},  {DW_FORM_GNU_addr_index, 9}, {DW_FORM_addrx1, 1},
		{DW_FORM_addrx2, 2}, {DW_FORM_addrx3, 3},         {DW_FORM_addrx4, 4},
	};

	for (size_t i = 0; i < NWAYS * sizeof(forms) / sizeof(forms[0]); i++) {
		const struct way *way = &ways[i % NWAYS];
		const unsigned n = (unsigned)(i / NWAYS);

		for (uint64_t index = 0; index < 4; index++) {
			const int attrs[] = {DW_AT_low_pc, forms[n].form, DW_AT_addr_base, DW_FORM_data1, 0};
			struct unit_view view;
			struct entry entry;
			struct fixture f;
			uint64_t address;

			start(&f, way);
			dw_bytes(&f.addr, "header..", 8);
			for (uint64_t at = 0; at < 3; at++)
				dw_uint(&f.addr, way->address, 0x400000 + at);
			dw_uleb(&f.info, 1);
			if (forms[n].size == 9)
				dw_uleb(&f.info, index);
			else
				dw_uint(&f.info, forms[n].size, index);
			dw_u8(&f.info, 8);
			dw_abbrev(&f.abbrev, 1, DW_TAG_compile_unit, false, attrs);
			finish(&f);
			assert_true(unit_view_init(&view, &f.file, &f.unit, false, &entry));
			assert_int_equal(view.addr_base, 8);
			/* The base comes after the index that needs it. */
			assert_int_equal(view.low_pc, index < 3 ? 0x400000 + index : 0);
			assert_int_equal(value_address(&view, entry_value(&entry, ATTR_LOW_PC), &address), index < 3);
			assert_false(unit_address(&view, UINT64_MAX, &address));
			unit_view_deinit(&view);
		}
	}
}

static void test_references(void **state)
{
	static const struct {
		int form;
		bool in_unit, alt;
	} forms[] = {
		{DW_FORM_ref4, true, false},        {DW_FORM_ref_udata, true, false}, {DW_FORM_ref_addr, false, false},
		{DW_FORM_GNU_ref_alt, false, true}, {DW_FORM_ref_sup4, false, true},
	};

	for (size_t i = 0; i < NWAYS * sizeof(forms) / sizeof(forms[0]); i++) {
		const struct way *way = &ways[i % NWAYS];
		const int form = forms[i / NWAYS].form;
		const struct dwarf_file *file;
		struct unit_view view;
		struct entry entry;
		struct fixture f;
		uint64_t offset;

		start(&f, way);
		dw_uleb(&f.info, 1);
		if (form == DW_FORM_ref_udata)
			dw_uleb(&f.info, 0x42);
		else if (form == DW_FORM_ref4 || form == DW_FORM_ref_sup4)
			dw_uint(&f.info, 4, 0x42);
		else
			dw_uint(&f.info, (unsigned)form_size((uint16_t)form, &f.unit.sizes), 0x42);
		assert_true(read_one(&f, form, &view, &entry));
		assert_true(value_reference(&view, entry_value(&entry, ATTR_NAME), &file, &offset));
		assert_int_equal(offset, forms[i / NWAYS].in_unit ? f.unit.offset + 0x42 : 0x42);
		assert_ptr_equal(file, forms[i / NWAYS].alt ? &f.alt : &f.file);
		f.file.alt = NULL;
		assert_int_equal(value_reference(&view, entry_value(&entry, ATTR_NAME), &file, &offset),
				 !forms[i / NWAYS].alt);
		unit_view_deinit(&view);
	}
}

static void test_implicit_and_indirect(void **state)
{
	const int implicit[] = {DW_AT_name, DW_FORM_implicit_const, -5, 0};
	struct unit_view view;
	struct entry entry;
	struct fixture f;
	uint64_t number;

	start(&f, &ways[0]);
	dw_uleb(&f.info, 1);
	dw_abbrev(&f.abbrev, 1, DW_TAG_compile_unit, false, implicit);
	finish(&f);
	assert_true(unit_view_init(&view, &f.file, &f.unit, false, &entry));
	assert_true(value_number(entry_value(&entry, ATTR_NAME), &number));
	assert_true((int64_t)number == -5);
	unit_view_deinit(&view);

	start(&f, &ways[0]);
	dw_uleb(&f.info, 1);
	dw_uleb(&f.info, DW_FORM_data2);
	dw_uint(&f.info, 2, 777);
	assert_true(read_one(&f, DW_FORM_indirect, &view, &entry));
	assert_true(value_number(entry_value(&entry, ATTR_NAME), &number));
	assert_int_equal(number, 777);
	unit_view_deinit(&view);
	check_cuts(&f, DW_FORM_indirect, 3);

	/* Not again, and not without a value. */
	for (int form = DW_FORM_indirect; form; form = form == DW_FORM_indirect ? DW_FORM_implicit_const : 0) {
		start(&f, &ways[0]);
		dw_uleb(&f.info, 1);
		dw_uleb(&f.info, (uint64_t)form);
		dw_uint(&f.info, 4, 0x16161616);
		assert_false(read_one(&f, DW_FORM_indirect, &view, &entry));
		unit_view_deinit(&view);
	}
}

static void test_unknown_form(void **state)
{
	struct unit_view view;
	struct entry entry;
	struct fixture f;

	start(&f, &ways[0]);
	dw_uleb(&f.info, 1);
	dw_uint(&f.info, 8, 0);
	assert_false(read_one(&f, 0x77, &view, &entry));
	unit_view_deinit(&view);
}

static void test_sibling(void **state)
{
	const int attrs[] = {DW_AT_sibling, DW_FORM_ref4, DW_AT_byte_size, DW_FORM_udata, 0};
	struct unit_view view;
	struct entry entry;
	struct fixture f;
	struct cursor c;
	uint64_t sibling;

	start(&f, &ways[0]);
	dw_uleb(&f.info, 1);
	dw_uint(&f.info, 4, 0x33);
	dw_uleb(&f.info, 300);
	dw_abbrev(&f.abbrev, 1, DW_TAG_structure_type, true, attrs);
	finish(&f);
	assert_true(unit_view_init(&view, &f.file, &f.unit, false, &entry));
	c = unit_cursor(&view, f.unit.dies);
	cursor_uleb(&c);
	assert_true(entry_skip(&view, &c, entry.abbrev, &sibling));
	assert_int_equal(sibling, f.unit.offset + 0x33);
	assert_int_equal(cursor_left(&c), 0);
	unit_view_deinit(&view);
}

/* Offsets outside of the unit's entries, and codes that no abbreviation has. */
static void test_outside(void **state)
{
	struct unit_view view;
	struct entry entry;
	struct fixture f;
	struct cursor c;

	start(&f, &ways[0]);
	dw_uleb(&f.info, 1);
	dw_u8(&f.info, 9);
	dw_uleb(&f.info, 2);
	assert_true(read_one(&f, DW_FORM_data1, &view, &entry));
	assert_true(entry_read_at(&view, f.unit.dies, &entry));
	assert_false(entry_read_at(&view, f.unit.dies + 2, &entry));
	assert_false(entry_read_at(&view, f.unit.dies - 1, &entry));
	assert_false(entry_read_at(&view, f.unit.end, &entry));
	assert_false(entry_read_at(&view, UINT64_MAX, &entry));
	c = unit_cursor(&view, 0);
	assert_true(c.bad);
	unit_view_deinit(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sized_by_the_unit),
		cmocka_unit_test(test_leb),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_string_in_place),
		cmocka_unit_test(test_addresses_by_index),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_implicit_and_indirect),
		cmocka_unit_test(test_unknown_form),
		cmocka_unit_test(test_sibling),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests_name("entry", tests, NULL, NULL);
}
