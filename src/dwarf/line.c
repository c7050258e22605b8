/* SPDX-License-Identifier: MIT */
#include "dwarf/line.h"

#include <dwarf.h>
#include <stdlib.h>

#include "dwarf/entry.h"

enum {
	MAX_ROWS = 1 << 26,
	MAX_FILES = UINT16_MAX - 1, /* rows have 16 bits for them */
	MAX_FORMATS = 32,
};

struct sequence {
	uint32_t start;
	uint32_t end;
	size_t first; /* row */
	size_t last;  /* the row that ends it */
};

/* The program's header, what it needs while it runs, and its registers. */
struct program {
	const struct dwarf_file *file;
	const struct code_bounds *code;
	struct line_table *table;
	struct form_sizes sizes;
	struct cursor c;

	uint8_t min_instruction;
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	const uint8_t *operands; /* opcode_base - 1 numbers of operands */
	VEC(const char *) dirs;
	VEC(struct sequence) sequences;

	uint64_t address;
	uint32_t line;
	uint32_t file_number;
	uint32_t column;
	size_t first; /* row of the sequence */
	bool dropped; /* its code is not in the file */
};

static void program_deinit(struct program *p)
{
	vec_deinit(&p->dirs);
	vec_deinit(&p->sequences);
}

static bool add_file(struct program *p, const char *name, uint64_t dir, const char *comp_dir)
{
	struct map_file file = {.name = name};

	if (p->table->files.len == MAX_FILES)
		return true;
	if (name && *name != '/') {
		file.dir = dir < p->dirs.len ? p->dirs.data[dir] : NULL;
		/* Since DWARF 5 directory 0 is that of the compilation; relative ones start there. */
		if (!file.dir || (*file.dir != '/' && !(p->sizes.version >= 5 && dir == 0)))
			file.comp_dir = comp_dir;
	}
	return vec_push(&p->table->files, file);
}

/* DWARF 2…4: directories, then files, each list terminated by an empty string. Number 0 is the unit's own directory. */
static bool read_old_names(struct program *p, const char *comp_dir)
{
	const char *name;

	if (!vec_push(&p->dirs, NULL) || !vec_push(&p->table->files, (struct map_file){0}))
		return false;
	while ((name = cursor_cstr(&p->c)) && *name)
		if (!vec_push(&p->dirs, name))
			return false;
	while ((name = cursor_cstr(&p->c)) && *name) {
		uint64_t dir = cursor_uleb(&p->c);

		cursor_uleb(&p->c); /* time */
		cursor_uleb(&p->c); /* size */
		if (!add_file(p, name, dir, comp_dir))
			return false;
	}
	return true;
}

static const char *format_string(const struct program *p, const struct value *value)
{
	switch (value->form) {
	case DW_FORM_string:
		return value->string;
	case DW_FORM_line_strp:
		return dwarf_string(&p->file->line_str, value->number);
	case DW_FORM_strp:
		return dwarf_string(&p->file->str, value->number);
	default:
		return NULL;
	}
}

/* DWARF 5: a table that describes its own columns. */
static bool read_new_table(struct program *p, bool files, const char *comp_dir)
{
	struct {
		uint16_t content, form;
	} formats[MAX_FORMATS];
	uint8_t nformats = cursor_u8(&p->c);
	uint64_t count;

	for (unsigned i = 0; i < nformats; i++) {
		uint64_t content = cursor_uleb(&p->c), form = cursor_uleb(&p->c);

		if (i >= MAX_FORMATS || content > UINT16_MAX || form > UINT16_MAX) {
			cursor_fail(&p->c);
			return true;
		}
		formats[i].content = (uint16_t)content;
		formats[i].form = (uint16_t)form;
	}
	count = cursor_uleb(&p->c);
	for (uint64_t n = 0; n < count && !p->c.bad; n++) {
		size_t left = cursor_left(&p->c);
		const char *path = NULL;
		uint64_t dir = 0;

		for (unsigned i = 0; i < nformats; i++) {
			struct value value = {0};

			if (!value_read(&p->sizes, &p->c, formats[i].form, 0, &value))
				cursor_fail(&p->c);
			if (formats[i].content == DW_LNCT_path)
				path = format_string(p, &value);
			else if (formats[i].content == DW_LNCT_directory_index)
				dir = value.number;
		}
		if (p->c.bad || cursor_left(&p->c) == left) /* entries without bytes could be any number */
			break;
		if (files ? !add_file(p, path, dir, comp_dir) : !vec_push(&p->dirs, path))
			return false;
	}
	return true;
}

/* Leaves the cursor at the program itself, bounded by its end. A damaged header leaves a bad cursor. */
static bool read_header(struct program *p, const char *comp_dir)
{
	uint64_t length = dwarf_initial_length(&p->c, &p->sizes.offset), header_length;
	struct cursor unit = cursor_take(&p->c, length);
	size_t program;

	p->c = unit;
	p->sizes.version = cursor_u16(&p->c);
	if (p->sizes.version < 2 || p->sizes.version > 5)
		cursor_fail(&p->c);
	if (p->sizes.version == 5) {
		p->sizes.address = cursor_u8(&p->c);
		cursor_u8(&p->c); /* segment selectors no longer exist */
	}
	header_length = cursor_uint(&p->c, p->sizes.offset);
	program = cursor_offset(&p->c) + (header_length < cursor_left(&p->c) ? header_length : cursor_left(&p->c));
	p->min_instruction = cursor_u8(&p->c);
	if (p->sizes.version >= 4)
		cursor_u8(&p->c); /* operations of an instruction: 1 on all but VLIW machines */
	cursor_u8(&p->c);         /* default_is_stmt */
	p->line_base = (int8_t)cursor_u8(&p->c);
	p->line_range = cursor_u8(&p->c);
	p->opcode_base = cursor_u8(&p->c);
	p->operands = p->c.p;
	cursor_skip(&p->c, p->opcode_base ? p->opcode_base - 1u : 0);
	if (!p->line_range || !p->opcode_base)
		cursor_fail(&p->c);
	if (p->sizes.version >= 5) {
		if (!read_new_table(p, false, comp_dir) || !read_new_table(p, true, comp_dir))
			return false;
	} else if (!read_old_names(p, comp_dir)) {
		return false;
	}
	cursor_seek(&p->c, program);
	return true;
}

static void reset(struct program *p)
{
	p->address = 0;
	p->line = 1;
	p->file_number = 1;
	p->column = 0;
	p->first = p->table->rows.len;
	p->dropped = false;
}

/* Of rows at one address the last counts; a row that repeats the one before it is left out. */
static bool add_row(struct program *p, bool end)
{
	struct map_row row = {
		.line = end ? 0 : p->line,
		.file = end || p->file_number > MAX_FILES ? MAP_NO_FILE : (uint16_t)p->file_number,
		.column = p->column > UINT16_MAX ? 0 : (uint16_t)p->column,
	};
	struct map_row *last = NULL;

	if (p->dropped)
		return true;
	if (p->table->rows.len > p->first)
		last = &p->table->rows.data[p->table->rows.len - 1];
	if (p->address < p->code->start || p->address - p->code->start > UINT32_MAX ||
	    (!last && !end && !is_code(p->code, p->address)) || (last && last->start > p->address - p->code->start)) {
		p->dropped = true; /* the linker dropped the code, or the rows do not rise */
		p->table->rows.len = p->first;
		return true;
	}
	row.start = (uint32_t)(p->address - p->code->start);
	if (last && last->start == row.start && !end) {
		row.start = last->start;
		*last = row;
		return true;
	}
	if (last && last->line == row.line && last->file == row.file && last->column == row.column && !end)
		return true;
	return p->table->rows.len < MAX_ROWS && vec_push(&p->table->rows, row);
}

static bool end_sequence(struct program *p)
{
	struct sequence sequence;

	if (!add_row(p, true))
		return false;
	if (p->table->rows.len > p->first + 1) {
		sequence = (struct sequence){
			.start = p->table->rows.data[p->first].start,
			.end = p->table->rows.data[p->table->rows.len - 1].start,
			.first = p->first,
			.last = p->table->rows.len - 1,
		};
		if (!vec_push(&p->sequences, sequence))
			return false;
	} else {
		p->table->rows.len = p->first;
	}
	reset(p);
	return true;
}

static bool run_extended(struct program *p, const char *comp_dir)
{
	uint64_t len = cursor_uleb(&p->c);
	struct cursor operation = cursor_take(&p->c, len);

	switch (cursor_u8(&operation)) {
	case DW_LNE_end_sequence:
		return end_sequence(p);
	case DW_LNE_set_address:
		p->address = cursor_uint(&operation, len - 1 <= 8 ? (unsigned)len - 1 : p->sizes.address);
		break;
	case DW_LNE_define_file: {
		const char *name = cursor_cstr(&operation);

		return !name || add_file(p, name, cursor_uleb(&operation), comp_dir);
	}
	default:
		break;
	}
	return true;
}

static bool run_standard(struct program *p, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return add_row(p, false);
	case DW_LNS_advance_pc:
		p->address += cursor_uleb(&p->c) * p->min_instruction;
		break;
	case DW_LNS_advance_line:
		p->line += (uint32_t)cursor_sleb(&p->c);
		break;
	case DW_LNS_set_file:
		p->file_number = (uint32_t)cursor_uleb(&p->c);
		break;
	case DW_LNS_set_column:
		p->column = (uint32_t)cursor_uleb(&p->c);
		break;
	case DW_LNS_const_add_pc:
		p->address += (uint64_t)((255 - p->opcode_base) / p->line_range) * p->min_instruction;
		break;
	case DW_LNS_fixed_advance_pc:
		p->address += cursor_u16(&p->c);
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	default:
		for (unsigned i = 0; i < p->operands[opcode - 1]; i++)
			cursor_uleb(&p->c);
	}
	return true;
}

static bool run(struct program *p, const char *comp_dir)
{
	reset(p);
	while (cursor_left(&p->c)) {
		uint8_t opcode = cursor_u8(&p->c);
		bool ok;

		if (opcode >= p->opcode_base) {
			unsigned special = opcode - p->opcode_base;

			p->address += (uint64_t)(special / p->line_range) * p->min_instruction;
			p->line += (uint32_t)(p->line_base + (int)(special % p->line_range));
			ok = add_row(p, false);
		} else {
			ok = opcode ? run_standard(p, opcode) : run_extended(p, comp_dir);
		}
		if (!ok)
			return false;
	}
	p->table->rows.len = p->first; /* a sequence without an end does not say how far its last line goes */
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

/* Sorts the sequences, which come in any order, by address. One that reaches into the next is cut. */
static bool order_rows(struct program *p)
{
	VEC(struct map_row) sorted = {0};
	bool rising = true;

	for (size_t i = 1; i < p->sequences.len; i++)
		rising &= p->sequences.data[i - 1].end <= p->sequences.data[i].start;
	if (rising)
		return true;
	qsort(p->sequences.data, p->sequences.len, sizeof(*p->sequences.data), compare);
	if (!vec_reserve(&sorted, p->table->rows.len))
		return false;
	for (size_t i = 0; i < p->sequences.len; i++) {
		const struct sequence *sequence = &p->sequences.data[i];
		const struct map_row *rows = p->table->rows.data;

		while (sorted.len && sorted.data[sorted.len - 1].start >= sequence->start)
			sorted.len--;
		for (size_t row = sequence->first; row <= sequence->last; row++)
			sorted.data[sorted.len++] = rows[row];
	}
	vec_deinit(&p->table->rows);
	p->table->rows.data = sorted.data;
	p->table->rows.len = sorted.len;
	p->table->rows.cap = sorted.cap;
	return true;
}

bool line_table_read(struct line_table *table, const struct dwarf_file *file, uint64_t offset, uint8_t address_size,
		     const char *comp_dir, const struct code_bounds *code)
{
	struct program p = {
		.file = file,
		.code = code,
		.table = table,
		.sizes = {.address = address_size},
		.c = dwarf_cursor(file, &file->line, offset),
	};
	bool ok = read_header(&p, comp_dir);

	table->bytes = (size_t)(p.c.end - p.c.start);
	ok = ok && run(&p, comp_dir) && order_rows(&p);

	program_deinit(&p);
	return ok;
}

void line_table_deinit(struct line_table *table)
{
	vec_deinit(&table->rows);
	vec_deinit(&table->files);
}
