/* SPDX-License-Identifier: MIT */
#include "dwarfmake.h"

#include "dwarf/line.h"

enum { CODE = 0x1000, LINE_BASE = -5, LINE_RANGE = 14, OPCODE_BASE = 13 };

static const struct code_bounds code = {.start = CODE, .end = 0x100000};

struct fixture {
	struct dwarfmake m, line_str, str;
	uint16_t version;
	uint8_t offset, address;
	uint8_t min_instruction;
	size_t begin, header;
	struct dwarf_file file;
	struct line_table table;
};

static void put_formats(struct dwarfmake *m, bool files)
{
	dw_u8(m, files ? 3 : 1);
	dw_uleb(m, DW_LNCT_path);
	dw_uleb(m, files ? DW_FORM_string : DW_FORM_line_strp);
	if (!files)
		return;
	dw_uleb(m, DW_LNCT_MD5);
	dw_uleb(m, DW_FORM_data16);
	dw_uleb(m, DW_LNCT_directory_index);
	dw_uleb(m, DW_FORM_udata);
}

/*
 * Directories: 0 is the compilation's, 1 "sub", 2 "/usr/include". Files: "a.c" in 0, "b.h" in 1, "c.h" in 2, "/abs.h",
 * "far.h" in a directory that is not there. They are numbered from 1 before DWARF 5, from 0 since.
 */
static const struct {
	const char *name;
	uint64_t dir;
} files[] = {{"a.c", 0}, {"b.h", 1}, {"c.h", 2}, {"/abs.h", 1}, {"far.h", 9}};

static void put_names(struct fixture *f)
{
	struct dwarfmake *m = &f->m;

	if (f->version < 5) {
		dw_str(m, "sub");
		dw_str(m, "/usr/include");
		dw_u8(m, 0);
		for (unsigned i = 0; i < 5; i++) {
			dw_str(m, files[i].name);
			dw_uleb(m, files[i].dir);
			dw_uleb(m, 0);
			dw_uleb(m, 300);
		}
		dw_u8(m, 0);
		return;
	}
	dw_bytes(&f->line_str, "x\0/comp\0sub\0/usr/include", 25);
	put_formats(m, false);
	dw_uleb(m, 3);
	dw_uint(m, f->offset, 2);
	dw_uint(m, f->offset, 8);
	dw_uint(m, f->offset, 12);
	put_formats(m, true);
	dw_uleb(m, 5);
	for (unsigned i = 0; i < 5; i++) {
		dw_str(m, files[i].name);
		dw_bytes(m, "0123456789abcdef", 16);
		dw_uleb(m, files[i].dir);
	}
}

static void start(struct fixture *f, uint16_t version, uint8_t offset, uint8_t address, bool big_endian)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct dwarfmake *m = &f->m;

	*f = (struct fixture){.version = version, .offset = offset, .address = address, .min_instruction = 1};
	m->big_endian = big_endian;
	f->begin = dw_begin(m, offset);
	dw_uint(m, 2, version);
	if (version == 5) {
		dw_u8(m, address);
		dw_u8(m, 0);
	}
	dw_uint(m, offset, 0);
	f->header = m->len;
	dw_u8(m, 1);
	if (version >= 4)
		dw_u8(m, 1);
	dw_u8(m, 1);
	dw_u8(m, (uint8_t)LINE_BASE);
	dw_u8(m, LINE_RANGE);
	dw_u8(m, OPCODE_BASE);
	dw_bytes(m, operands, sizeof(operands));
	put_names(f);
	dw_uint_at(m, f->header - offset, offset, m->len - f->header);
}

static void set_address(struct fixture *f, uint64_t at)
{
	dw_u8(&f->m, 0);
	dw_uleb(&f->m, 1u + f->address);
	dw_u8(&f->m, DW_LNE_set_address);
	dw_uint(&f->m, f->address, at);
}

static void end_sequence(struct fixture *f)
{
	dw_u8(&f->m, 0);
	dw_uleb(&f->m, 1);
	dw_u8(&f->m, DW_LNE_end_sequence);
}

static void advance(struct fixture *f, uint64_t pc, int64_t line)
{
	dw_u8(&f->m, DW_LNS_advance_pc);
	dw_uleb(&f->m, pc);
	dw_u8(&f->m, DW_LNS_advance_line);
	dw_sleb(&f->m, line);
}

static void copy(struct fixture *f)
{
	dw_u8(&f->m, DW_LNS_copy);
}

/* A special opcode. */
static void special(struct fixture *f, unsigned pc, int line)
{
	dw_u8(&f->m, (uint8_t)(OPCODE_BASE + pc * LINE_RANGE + (unsigned)(line - LINE_BASE)));
}

static void read_table(struct fixture *f)
{
	line_table_deinit(&f->table);
	dw_uint_at(&f->m, f->begin - f->offset, f->offset, f->m.len - f->begin);
	f->file = (struct dwarf_file){
		.line = dw_span(&f->m),
		.line_str = dw_span(&f->line_str),
		.str = dw_span(&f->str),
		.big_endian = f->m.big_endian,
	};
	f->table = (struct line_table){0};
	assert_true(line_table_read(&f->table, &f->file, 0, f->address, "/comp", &code));
}

static struct unit_map as_map(const struct fixture *f)
{
	return (struct unit_map){.base = code.start, .rows = f->table.rows.data, .nrows = f->table.rows.len};
}

static uint32_t line_at(const struct fixture *f, uint64_t at)
{
	struct unit_map map = as_map(f);
	const struct map_row *row = unit_map_row(&map, at);

	return row ? row->line : 0;
}

static const struct {
	uint16_t version;
	uint8_t offset, address;
	bool big_endian;
} ways[] = {
	{2, 4, 8, false}, {3, 4, 8, true},  {3, 8, 8, false}, {4, 4, 4, false},
	{4, 8, 8, true},  {5, 4, 8, false}, {5, 8, 4, true},
};

enum { NWAYS = sizeof(ways) / sizeof(ways[0]) };

static void start_way(struct fixture *f, size_t i)
{
	start(f, ways[i].version, ways[i].offset, ways[i].address, ways[i].big_endian);
}

static void put_program(struct fixture *f)
{
	struct dwarfmake *m = &f->m;

	set_address(f, 0x2000);
	advance(f, 0, 9);
	copy(f);           /* 0x2000: 10 */
	special(f, 4, 2);  /* 0x2004: 12 */
	special(f, 2, -5); /* 0x2006: 7 */
	dw_u8(m, DW_LNS_negate_stmt);
	dw_u8(m, DW_LNS_set_basic_block);
	dw_u8(m, DW_LNS_set_prologue_end);
	dw_u8(m, DW_LNS_set_epilogue_begin);
	dw_u8(m, DW_LNS_set_isa);
	dw_uleb(m, 1000);
	dw_u8(m, DW_LNS_set_file);
	dw_uleb(m, 2);
	dw_u8(m, DW_LNS_set_column);
	dw_uleb(m, 300);
	dw_u8(m, DW_LNS_const_add_pc); /* as special opcode 255: 17 */
	copy(f);                       /* 0x2017: 7, file 2, column 300 */
	dw_u8(m, DW_LNS_fixed_advance_pc);
	dw_uint(m, 2, 0x100);
	special(f, 0, 1); /* 0x2117: 8 */
	dw_u8(m, 0);      /* an extended operation of somebody's own */
	dw_uleb(m, 3);
	dw_u8(m, DW_LNE_lo_user + 5);
	dw_bytes(m, "ab", 2);
	dw_u8(m, 0);
	dw_uleb(m, 2);
	dw_u8(m, DW_LNE_set_discriminator);
	dw_uleb(m, 9);
	advance(f, 0x200, 1000);
	copy(f); /* 0x2317: 1008 */
	advance(f, 1, 0);
	end_sequence(f); /* 0x2318 */
}

static void check_program(const struct fixture *f)
{
	struct unit_map map = as_map(f);
	const struct map_row *row;

	assert_int_equal(line_at(f, 0x1fff), 0);
	assert_int_equal(line_at(f, 0x2000), 10);
	assert_int_equal(line_at(f, 0x2003), 10);
	assert_int_equal(line_at(f, 0x2004), 12);
	assert_int_equal(line_at(f, 0x2006), 7);
	row = unit_map_row(&map, 0x2016);
	assert_int_equal(row->file, 1);
	assert_int_equal(row->column, 0);
	row = unit_map_row(&map, 0x2017);
	assert_int_equal(row->line, 7);
	assert_int_equal(row->file, 2);
	assert_int_equal(row->column, 300);
	assert_int_equal(line_at(f, 0x2116), 7);
	assert_int_equal(line_at(f, 0x2117), 8);
	assert_int_equal(line_at(f, 0x2317), 1008);
	assert_int_equal(line_at(f, 0x2318), 0);
}

static void test_every_opcode(void **state)
{
	for (size_t i = 0; i < NWAYS; i++) {
		struct fixture f;

		start_way(&f, i);
		put_program(&f);
		read_table(&f);
		check_program(&f);
		line_table_deinit(&f.table);
	}
}

/* Cut anywhere: the table has no line that the whole one has not. */
static void test_truncated(void **state)
{
	for (size_t i = 0; i < NWAYS; i++) {
		struct fixture f;
		size_t whole;

		start_way(&f, i);
		put_program(&f);
		whole = f.m.len;
		for (size_t len = 0; len < whole; len++) {
			struct line_table cut = {0};

			read_table(&f);
			f.file.line.len = len; /* the unit says that there is more */
			assert_true(line_table_read(&cut, &f.file, 0, f.address, "/comp", &code));
			assert_int_equal(cut.rows.len, 0);
			line_table_deinit(&cut);
			if (len < f.begin)
				continue;
			f.m.len = len; /* the unit says that this is all */
			read_table(&f);
			assert_int_equal(f.table.rows.len, 0); /* its only sequence did not end */
			f.m.len = whole;
		}
		line_table_deinit(&f.table);
	}
}

static void check_file(const struct fixture *f, unsigned index, const char *comp_dir, const char *dir, const char *name)
{
	unsigned number = index + (f->version < 5);
	const struct map_file *file = &f->table.files.data[number];

	assert_true(number < f->table.files.len);
	assert_string_equal(file->name, name);
	assert_int_equal(file->dir != NULL, dir != NULL);
	if (dir)
		assert_string_equal(file->dir, dir);
	assert_int_equal(file->comp_dir != NULL, comp_dir != NULL);
	if (comp_dir)
		assert_string_equal(file->comp_dir, comp_dir);
}

/* A path starts at its first part that is absolute. */
static void test_directories(void **state)
{
	for (size_t i = 0; i < NWAYS; i++) {
		struct fixture f;

		start_way(&f, i);
		read_table(&f);
		if (f.version < 5)
			check_file(&f, 0, "/comp", NULL, "a.c");
		else
			check_file(&f, 0, NULL, "/comp", "a.c");
		check_file(&f, 1, "/comp", "sub", "b.h");
		check_file(&f, 2, NULL, "/usr/include", "c.h");
		check_file(&f, 3, NULL, NULL, "/abs.h");
		check_file(&f, 4, "/comp", NULL, "far.h");
		line_table_deinit(&f.table);
	}
}

static void test_define_file(void **state)
{
	struct fixture f;

	start(&f, 4, 4, 8, false);
	dw_u8(&f.m, 0);
	dw_uleb(&f.m, 1 + 6 + 3);
	dw_u8(&f.m, DW_LNE_define_file);
	dw_str(&f.m, "def.h");
	dw_uleb(&f.m, 2);
	dw_uleb(&f.m, 0);
	dw_uleb(&f.m, 0);
	read_table(&f);
	check_file(&f, 5, NULL, "/usr/include", "def.h");
	line_table_deinit(&f.table);
}

static void put_sequence(struct fixture *f, uint64_t at, unsigned size, int line)
{
	set_address(f, at);
	advance(f, 0, line - 1);
	copy(f);
	advance(f, size / 2, 1);
	copy(f);
	advance(f, size - size / 2, 0);
	end_sequence(f);
}

static void test_sequences_in_any_order(void **state)
{
	struct fixture f;

	start(&f, 5, 4, 8, false);
	put_sequence(&f, 0x5000, 0x10, 50);
	put_sequence(&f, 0x3000, 0x10, 30);
	put_sequence(&f, 0x3010, 0x10, 31); /* right behind */
	put_sequence(&f, 0x4000, 0x10, 40);
	put_sequence(&f, 0x2000, 0x10, 20);
	read_table(&f);
	assert_int_equal(line_at(&f, 0x2000), 20);
	assert_int_equal(line_at(&f, 0x2008), 21);
	assert_int_equal(line_at(&f, 0x2010), 0);
	assert_int_equal(line_at(&f, 0x3008), 31);
	assert_int_equal(line_at(&f, 0x3010), 31);
	assert_int_equal(line_at(&f, 0x3018), 32);
	assert_int_equal(line_at(&f, 0x3020), 0);
	assert_int_equal(line_at(&f, 0x400f), 41);
	assert_int_equal(line_at(&f, 0x5000), 50);
	assert_int_equal(line_at(&f, 0x5010), 0);
	line_table_deinit(&f.table);
}

/* One that reaches into the next is cut; rows rise in any case. */
static void test_sequences_that_overlap(void **state)
{
	struct fixture f;

	start(&f, 5, 4, 8, false);
	put_sequence(&f, 0x3010, 0x10, 200);
	put_sequence(&f, 0x3000, 0x18, 100);
	put_sequence(&f, 0x4000, 0x10, 300);
	put_sequence(&f, 0x4000, 0x10, 400);
	read_table(&f);
	assert_int_equal(line_at(&f, 0x3000), 100);
	assert_int_equal(line_at(&f, 0x300c), 101);
	assert_int_equal(line_at(&f, 0x3010), 200);
	assert_int_equal(line_at(&f, 0x301f), 201);
	assert_int_equal(line_at(&f, 0x3020), 0);
	assert_int_equal(line_at(&f, 0x4000), 400);
	assert_int_equal(line_at(&f, 0x4010), 0);
	for (size_t i = 1; i < f.table.rows.len; i++)
		assert_true(f.table.rows.data[i - 1].start <= f.table.rows.data[i].start);
	line_table_deinit(&f.table);
}

/* Code that the linker dropped: at 0 or 1, or at the highest addresses. */
static void test_dropped(void **state)
{
	static const uint64_t dropped[] = {0, 1, 0xfff, 0x100000, UINT32_MAX, UINT64_MAX, UINT64_MAX - 1};
	struct code_bounds from_zero = {.start = 0, .end = 0x100000};

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		struct line_table table = {0};
		struct fixture f;

		start(&f, 4, 4, 8, false);
		put_sequence(&f, dropped[i], 0x2000, 10); /* some of its rows would be code */
		put_sequence(&f, 0x2000, 0x10, 20);
		read_table(&f);
		assert_int_equal(f.table.rows.len, 3);
		assert_int_equal(line_at(&f, 0x2000), 20);
		assert_int_equal(line_at(&f, 0x1000), 0);
		/* The same when code may be at such addresses: a segment from 0. */
		assert_true(line_table_read(&table, &f.file, 0, 8, NULL, &from_zero));
		assert_int_equal(table.rows.len,
				 dropped[i] == 0xfff ? 5 : 3); /* of the other, what lies before 0x2000 */
		line_table_deinit(&table);
		line_table_deinit(&f.table);
	}
}

/* Rows must rise within a sequence: one that falls makes all of it doubtful. */
static void test_falling(void **state)
{
	struct fixture f;

	start(&f, 4, 4, 8, false);
	set_address(&f, 0x3000);
	copy(&f);
	set_address(&f, 0x2fff);
	copy(&f);
	set_address(&f, 0x3010);
	end_sequence(&f);
	put_sequence(&f, 0x2000, 0x10, 20);
	read_table(&f);
	assert_int_equal(f.table.rows.len, 3);
	assert_int_equal(line_at(&f, 0x3000), 0);
	assert_int_equal(line_at(&f, 0x2000), 20);
	line_table_deinit(&f.table);
}

/* Of rows at one address the last counts. */
static void test_same_address(void **state)
{
	struct fixture f;

	start(&f, 4, 4, 8, false);
	set_address(&f, 0x2000);
	special(&f, 0, 3);
	special(&f, 0, 4);
	special(&f, 4, 0); /* the same line: no new row */
	special(&f, 4, 1);
	advance(&f, 4, 0);
	end_sequence(&f);
	read_table(&f);
	assert_int_equal(f.table.rows.len, 3);
	assert_int_equal(line_at(&f, 0x2000), 8);
	assert_int_equal(line_at(&f, 0x2004), 8);
	assert_int_equal(line_at(&f, 0x2008), 9);
	line_table_deinit(&f.table);
}

/* Headers that must not be believed. */
static void test_damaged_header(void **state)
{
	struct line_table table = {0};
	struct fixture f;

	for (unsigned kind = 0; kind < 5; kind++) {
		start(&f, 4, 4, 8, false);
		put_program(&f);
		if (kind == 0)
			f.m.data[f.begin] = 6; /* version */
		else if (kind == 1)
			f.m.data[f.begin] = 1;
		else if (kind == 2)
			f.m.data[f.header + 4] = 0; /* line range: would be divided by */
		else if (kind == 3)
			f.m.data[f.header + 5] = 0; /* opcode base */
		else
			dw_uint_at(&f.m, f.header - 4, 4, UINT32_MAX); /* its own length: there is no program */
		read_table(&f);
		assert_int_equal(f.table.rows.len, 0);
		line_table_deinit(&f.table);
	}
	assert_true(line_table_read(&table, &f.file, f.m.len, 8, NULL, &code));
	assert_true(line_table_read(&table, &f.file, UINT64_MAX, 8, NULL, &code));
	assert_int_equal(table.rows.len, 0);
	line_table_deinit(&table);
}

/* DWARF 5 lets a table have entries of no bytes: any number of them. */
static void test_entries_without_bytes(void **state)
{
	static const uint8_t counts[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};

	for (unsigned table = 0; table < 2; table++) {
		struct fixture f;
		size_t names;

		start(&f, 5, 4, 8, false);
		names = f.header + 6 + 12;
		f.m.len = names;
		if (table) { /* no directories */
			dw_u8(&f.m, 0);
			dw_u8(&f.m, 0);
		}
		dw_u8(&f.m, 1);
		dw_uleb(&f.m, DW_LNCT_path);
		dw_uleb(&f.m, DW_FORM_flag_present);
		dw_bytes(&f.m, counts, sizeof(counts));
		read_table(&f);
		assert_true(f.table.files.len <= 1);
		line_table_deinit(&f.table);
	}
}

/* An opcode that is not known is skipped by the number of its operands; fewer are known when the base is low. */
static void test_opcode_base(void **state)
{
	struct fixture f;

	start(&f, 2, 4, 8, false);
	/* One more standard opcode, with two operands. */
	memmove(f.m.data + f.header + 5 + 12 + 1, f.m.data + f.header + 5 + 12, f.m.len - f.header - 5 - 12);
	f.m.len++;
	f.m.data[f.header + 4] = OPCODE_BASE + 1;
	f.m.data[f.header + 5 + 12] = 2;
	dw_uint_at(&f.m, f.header - 4, 4, f.m.len - f.header);
	set_address(&f, 0x2000);
	dw_u8(&f.m, OPCODE_BASE);
	dw_uleb(&f.m, 1);
	dw_uleb(&f.m, 10000);
	advance(&f, 0, 4);
	copy(&f);
	advance(&f, 4, 0);
	end_sequence(&f);
	read_table(&f);
	assert_int_equal(line_at(&f, 0x2000), 5);
	line_table_deinit(&f.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_define_file),
		cmocka_unit_test(test_sequences_in_any_order),
		cmocka_unit_test(test_sequences_that_overlap),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_falling),
		cmocka_unit_test(test_same_address),
		cmocka_unit_test(test_damaged_header),
		cmocka_unit_test(test_entries_without_bytes),
		cmocka_unit_test(test_opcode_base),
	};

	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
