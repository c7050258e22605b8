/* SPDX-License-Identifier: MIT */
#include "dwarfmake.h"

#include "dwarf/rangelist.h"

/* A unit without bytes of its own: entries are made by hand. */
struct fixture {
	struct dwarfmake lists, addr;
	struct dwarf_file file;
	struct unit_view view;
	struct pc_ranges ranges;
	struct entry entry;
};

static void start(struct fixture *f, uint16_t version, uint8_t address, uint8_t offset, bool big_endian)
{
	memset(f, 0, sizeof(*f));
	f->lists.big_endian = f->addr.big_endian = f->file.big_endian = big_endian;
	f->view = (struct unit_view){
		.file = &f->file,
		.addr_file = &f->file,
		.ranges_file = &f->file,
		.unit.sizes = {.version = version, .address = address, .offset = offset},
		.low_pc = 0x1000,
	};
}

static void give(struct fixture *f, enum attr attr, uint16_t form, uint64_t number)
{
	f->entry.present |= 1u << attr;
	f->entry.values[attr] = (struct value){.form = form, .number = number};
}

static void read_ranges(struct fixture *f)
{
	f->file.addr = dw_span(&f->addr);
	if (f->view.unit.sizes.version < 5)
		f->file.ranges = dw_span(&f->lists);
	else
		f->file.rnglists = dw_span(&f->lists);
	f->ranges.budget = ranges_budget(&f->file, &f->file);
	assert_true(entry_ranges(&f->view, &f->entry, &f->ranges));
}

static void check_range(const struct fixture *f, size_t index, uint64_t start_at, uint64_t end)
{
	assert_true(index < f->ranges.len);
	assert_int_equal(f->ranges.data[index].start, start_at);
	assert_int_equal(f->ranges.data[index].end, end);
}

static void test_low_and_high(void **state)
{
	struct fixture f;

	start(&f, 4, 8, 4, false);
	read_ranges(&f);
	assert_int_equal(f.ranges.len, 0);
	give(&f, ATTR_LOW_PC, DW_FORM_addr, 0x2000);
	read_ranges(&f);
	assert_int_equal(f.ranges.len, 0); /* a label, not a function */
	give(&f, ATTR_HIGH_PC, DW_FORM_addr, 0x2010);
	read_ranges(&f);
	assert_int_equal(f.ranges.len, 1);
	check_range(&f, 0, 0x2000, 0x2010);
	give(&f, ATTR_HIGH_PC, DW_FORM_data4, 0x20); /* a length */
	read_ranges(&f);
	assert_int_equal(f.ranges.len, 1);
	check_range(&f, 0, 0x2000, 0x2020);
	give(&f, ATTR_HIGH_PC, DW_FORM_data8, UINT64_MAX); /* around the end */
	read_ranges(&f);
	assert_int_equal(f.ranges.len, 0);
	give(&f, ATTR_HIGH_PC, DW_FORM_addr, 0x1000); /* backwards */
	read_ranges(&f);
	assert_int_equal(f.ranges.len, 0);
	vec_deinit(&f.ranges);
}

static void put_pair(struct fixture *f, uint64_t a, uint64_t b)
{
	dw_uint(&f->lists, f->view.unit.sizes.address, a);
	dw_uint(&f->lists, f->view.unit.sizes.address, b);
}

/* .debug_ranges: offsets from the unit's low pc, until another base is set. */
static void test_old(void **state)
{
	static const struct {
		uint8_t address;
		bool big_endian;
	} ways[] = {{8, false}, {8, true}, {4, false}, {4, true}};

	for (size_t i = 0; i < 4; i++) {
		uint64_t highest = ways[i].address == 4 ? UINT32_MAX : UINT64_MAX;
		size_t whole;
		struct fixture f;

		start(&f, 3, ways[i].address, 4, ways[i].big_endian);
		dw_bytes(&f.lists, "another list...", 16);
		put_pair(&f, 0x10, 0x20);
		put_pair(&f, 0x30, 0x30); /* empty */
		put_pair(&f, 0, 8);
		put_pair(&f, highest, 0x5000);
		put_pair(&f, 1, 2);
		put_pair(&f, highest, 0);
		put_pair(&f, 0x7000, 0x7001);
		put_pair(&f, 0, 0);
		put_pair(&f, 0x100, 0x200); /* of the next list */
		give(&f, ATTR_RANGES, DW_FORM_data4, 16);
		read_ranges(&f);
		assert_int_equal(f.ranges.len, 4);
		check_range(&f, 0, 0x1010, 0x1020);
		check_range(&f, 1, 0x1000, 0x1008);
		check_range(&f, 2, 0x5001, 0x5002);
		check_range(&f, 3, 0x7000, 0x7001);

		/* What came before a cut is kept. */
		whole = f.lists.len - 4 * ways[i].address;
		for (size_t len = 16; len < whole; len++) {
			f.lists.len = len;
			read_ranges(&f);
			assert_int_equal(f.ranges.len, len >= 16 + 14u * ways[i].address   ? 4
						       : len >= 16 + 10u * ways[i].address ? 3
						       : len >= 16 + 6u * ways[i].address  ? 2
						       : len >= 16 + 2u * ways[i].address  ? 1
											   : 0);
		}
		vec_deinit(&f.ranges);
	}
}

/* GNU's split DWARF 4 adds a base, and takes the lists of the file with the skeleton. */
static void test_old_of_a_split_unit(void **state)
{
	struct dwarf_file skeleton = {0};
	struct fixture f;

	start(&f, 4, 8, 4, false);
	dw_bytes(&f.lists, "another list...", 16);
	put_pair(&f, 0x10, 0x20);
	put_pair(&f, 0, 0);
	skeleton.ranges = dw_span(&f.lists);
	f.view.ranges_file = &skeleton;
	f.view.ranges_base = 16;
	give(&f, ATTR_RANGES, DW_FORM_sec_offset, 0);
	f.ranges.budget = ranges_budget(&f.file, &skeleton);
	assert_true(entry_ranges(&f.view, &f.entry, &f.ranges));
	assert_int_equal(f.ranges.len, 1);
	check_range(&f, 0, 0x1010, 0x1020);
	vec_deinit(&f.ranges);
}

static void put_list(struct fixture *f)
{
	struct dwarfmake *m = &f->lists;
	uint8_t address = f->view.unit.sizes.address;

	dw_u8(m, DW_RLE_offset_pair); /* from the unit's low pc */
	dw_uleb(m, 0x10);
	dw_uleb(m, 0x200);
	dw_u8(m, DW_RLE_base_addressx);
	dw_uleb(m, 1);
	dw_u8(m, DW_RLE_offset_pair);
	dw_uleb(m, 1);
	dw_uleb(m, 2);
	dw_u8(m, DW_RLE_base_address);
	dw_uint(m, address, 0x8000);
	dw_u8(m, DW_RLE_offset_pair);
	dw_uleb(m, 0);
	dw_uleb(m, 4);
	dw_u8(m, DW_RLE_startx_endx);
	dw_uleb(m, 0);
	dw_uleb(m, 1);
	dw_u8(m, DW_RLE_startx_length);
	dw_uleb(m, 1);
	dw_uleb(m, 0x300);
	dw_u8(m, DW_RLE_start_end);
	dw_uint(m, address, 0x9000);
	dw_uint(m, address, 0x9008);
	dw_u8(m, DW_RLE_start_length);
	dw_uint(m, address, 0xa000);
	dw_uleb(m, 5);
	dw_u8(m, DW_RLE_start_length); /* empty */
	dw_uint(m, address, 0xb000);
	dw_uleb(m, 0);
	dw_u8(m, DW_RLE_end_of_list);
	dw_u8(m, DW_RLE_offset_pair); /* of the next list */
	dw_uleb(m, 1);
	dw_uleb(m, 2);
}

static void check_list(const struct fixture *f)
{
	assert_int_equal(f->ranges.len, 7);
	check_range(f, 0, 0x1010, 0x1200);
	check_range(f, 1, 0x5001, 0x5002);
	check_range(f, 2, 0x8000, 0x8004);
	check_range(f, 3, 0x4000, 0x5000);
	check_range(f, 4, 0x5000, 0x5300);
	check_range(f, 5, 0x9000, 0x9008);
	check_range(f, 6, 0xa000, 0xa005);
}

static void test_new(void **state)
{
	static const struct {
		uint8_t address, offset;
		bool big_endian;
	} ways[] = {{8, 4, false}, {8, 8, true}, {4, 4, true}, {4, 8, false}};

	for (size_t i = 0; i < 4; i++) {
		struct fixture f;
		size_t whole, before = 0;

		start(&f, 5, ways[i].address, ways[i].offset, ways[i].big_endian);
		dw_bytes(&f.addr, "header..", 8);
		dw_uint(&f.addr, ways[i].address, 0x4000);
		dw_uint(&f.addr, ways[i].address, 0x5000);
		f.view.addr_base = 8;
		dw_bytes(&f.lists, "header..", 8);
		f.view.rnglists_base = 8;
		dw_uint(&f.lists, ways[i].offset, 0);
		dw_uint(&f.lists, ways[i].offset, 2u * ways[i].offset);
		put_list(&f);
		give(&f, ATTR_RANGES, DW_FORM_sec_offset, 8 + 2u * ways[i].offset);
		read_ranges(&f);
		check_list(&f);
		give(&f, ATTR_RANGES, DW_FORM_rnglistx, 1); /* through the table of offsets */
		read_ranges(&f);
		check_list(&f);
		give(&f, ATTR_RANGES, DW_FORM_rnglistx, UINT64_MAX);
		read_ranges(&f);
		assert_int_equal(f.ranges.len, 0);

		give(&f, ATTR_RANGES, DW_FORM_rnglistx, 1);
		whole = f.lists.len;
		for (size_t len = 0; len < whole; len++) {
			f.lists.len = len;
			read_ranges(&f);
			assert_in_range(f.ranges.len, before, 7);
			before = f.ranges.len;
		}
		assert_int_equal(before, 7);
		vec_deinit(&f.ranges);
	}
}

/* An address that is not in the table, and a kind that does not exist, end the list. */
static void test_new_damaged(void **state)
{
	struct fixture f;

	start(&f, 5, 8, 4, false);
	for (unsigned kind = 0; kind < 2; kind++) {
		f.lists.len = 0;
		dw_u8(&f.lists, DW_RLE_start_length);
		dw_uint(&f.lists, 8, 0x2000);
		dw_uleb(&f.lists, 1);
		dw_u8(&f.lists, kind ? 0x55 : DW_RLE_startx_length);
		dw_uleb(&f.lists, 12);
		dw_uleb(&f.lists, 3);
		dw_u8(&f.lists, DW_RLE_start_length);
		dw_uint(&f.lists, 8, 0x3000);
		dw_uleb(&f.lists, 1);
		give(&f, ATTR_RANGES, DW_FORM_sec_offset, 0);
		read_ranges(&f);
		assert_int_equal(f.ranges.len, 1);
		check_range(&f, 0, 0x2000, 0x2001);
	}
	vec_deinit(&f.ranges);
}

/* One list that any number of entries share does not take any amount of time. */
static void test_budget(void **state)
{
	static const uint16_t versions[] = {4, 5};

	for (size_t i = 0; i < 2; i++) {
		size_t total = 0;
		struct fixture f;

		start(&f, versions[i], 4, 4, false);
		for (unsigned n = 0; n < 100; n++) {
			if (versions[i] == 5)
				dw_u8(&f.lists, DW_RLE_start_end);
			put_pair(&f, 0x1000 + n, 0x1001 + n);
		}
		give(&f, ATTR_RANGES, DW_FORM_sec_offset, 0);
		read_ranges(&f);
		assert_int_equal(f.ranges.len, 100);
		for (unsigned n = 0; n < 1000; n++) {
			assert_true(entry_ranges(&f.view, &f.entry, &f.ranges));
			total += f.ranges.len;
		}
		assert_in_range(total, 100, f.lists.len);
		vec_deinit(&f.ranges);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_low_and_high),        cmocka_unit_test(test_old),
		cmocka_unit_test(test_old_of_a_split_unit), cmocka_unit_test(test_new),
		cmocka_unit_test(test_new_damaged),         cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests_name("rangelist", tests, NULL, NULL);
}
