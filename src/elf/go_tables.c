/* SPDX-License-Identifier: MIT */
#include "elf/go_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_CANDIDATES = 8, /* candidates that are examined more closely */
	HEADER_FIXED = 8,   /* magic, two zeros, quantum, size of a pointer */
	UNIT = 64,          /* bytes that are searched or copied for a unit of the budget */
};

static const uint64_t max_search = UINT64_C(1) << 30;

/* Words of runtime.moduledata that have not moved since Go 1.16. */
enum {
	MODULE_HEADER = 0,
	MODULE_NAMES = 1,
	MODULE_CUS = 4,
	MODULE_FILES = 7,
	MODULE_PCS = 10,
	MODULE_FUNCS = 13,
	MODULE_MIN_PC = 20,
	MODULE_MAX_PC = 21,
	MODULE_TEXT = 22,
};

struct cursor go_tables_at(const struct go_tables *tables, struct span span, uint64_t offset)
{
	struct cursor c = cursor_init(span.data ? span.data : (const uint8_t *)"", span.data ? span.len : 0);

	c.big_endian = tables->big_endian;
	cursor_seek(&c, offset);
	return c;
}

struct cursor go_tables_memory(const struct go_tables *tables, uint64_t vaddr)
{
	return go_tables_at(tables, image_bytes_at(tables->image, vaddr), 0);
}

static struct span span_from(struct span span, uint64_t offset)
{
	if (!span.data || offset >= span.len)
		return (struct span){0};
	return (struct span){.data = span.data + offset, .len = span.len - offset, .vaddr = span.vaddr + offset};
}

typedef bool (*segment_fn)(struct go_tables *tables, struct span bytes, void *arg);

/* Calls `visit` with the bytes of each loadable segment that has the flag, until it returns true. */
static bool each_segment(struct go_tables *tables, uint32_t flag, segment_fn visit, void *arg)
{
	const Elf64_Phdr *phdr;
	uint64_t total = 0;

	for (size_t i = 0; (phdr = image_segment(tables->image, i)); i++) {
		struct span bytes;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & flag))
			continue;
		bytes = image_bytes_at(tables->image, phdr->p_vaddr);
		total += bytes.data ? bytes.len : 0;
		if (total > max_search || !budget_take(tables->budget, bytes.len / UNIT + 1))
			return false;
		if (bytes.data && visit(tables, bytes, arg))
			return true;
	}
	return false;
}

/* Relocations: in a position-independent program the file does not have the final values of pointers. */

static struct cursor relocations(const struct go_tables *tables)
{
	const Elf64_Phdr *phdr = image_segment_of(tables->image, PT_DYNAMIC);
	uint64_t start = 0, size = 0;
	struct cursor c = {0};

	if (!phdr)
		return c;
	c = go_tables_memory(tables, phdr->p_vaddr);
	for (;;) {
		uint64_t tag = cursor_uint(&c, tables->ptr_size);
		uint64_t value = cursor_uint(&c, tables->ptr_size);

		if (c.bad || tag == DT_NULL || !budget_take(tables->budget, 1))
			break;
		if (tag == DT_RELA)
			start = value;
		else if (tag == DT_RELASZ)
			size = value;
	}
	c = go_tables_memory(tables, start);
	return size ? cursor_take(&c, size < cursor_left(&c) ? size : cursor_left(&c)) : (struct cursor){0};
}

/* The next relative relocation, which needs no symbol. False at the end. */
static bool next_relative(const struct go_tables *tables, struct cursor *c, uint64_t *where, uint64_t *value)
{
	unsigned symbol_shift = tables->ptr_size == 8 ? 32 : 8;

	while (cursor_left(c) && budget_take(tables->budget, 1)) {
		uint64_t info;

		*where = cursor_uint(c, tables->ptr_size);
		info = cursor_uint(c, tables->ptr_size);
		*value = cursor_uint(c, tables->ptr_size);
		if (!c->bad && info >> symbol_shift == 0)
			return true;
	}
	return false;
}

static void store(const struct go_tables *tables, uint8_t *at, uint64_t value)
{
	for (unsigned i = 0; i < tables->ptr_size; i++)
		at[tables->big_endian ? tables->ptr_size - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

/* Before 1.18 the tables themselves hold pointers. */
static int relocate(struct go_tables *tables, struct err *err)
{
	struct cursor c = relocations(tables);
	uint64_t where, value;

	while (next_relative(tables, &c, &where, &value)) {
		uint64_t offset = where - tables->whole.vaddr;

		if (where < tables->whole.vaddr || offset >= tables->whole.len ||
		    tables->whole.len - offset < tables->ptr_size)
			continue;
		if (!tables->relocated) {
			if (!budget_take(tables->budget, tables->whole.len / UNIT))
				return 0;
			tables->relocated = malloc(tables->whole.len);
			if (!tables->relocated)
				return err_set(err, ENOMEM, "out of memory");
			memcpy(tables->relocated, tables->whole.data, tables->whole.len);
		}
		store(tables, tables->relocated + offset, value);
	}
	if (tables->relocated)
		tables->whole.data = tables->relocated;
	return 0;
}

/* `count` words at an address, as the loader leaves them. */
static bool read_words(const struct go_tables *tables, uint64_t vaddr, size_t count, uint64_t *words)
{
	struct cursor c = go_tables_memory(tables, vaddr);
	uint64_t where, value;

	for (size_t i = 0; i < count; i++)
		words[i] = cursor_uint(&c, tables->ptr_size);
	if (c.bad)
		return false;
	c = relocations(tables);
	while (next_relative(tables, &c, &where, &value))
		if (where >= vaddr && (where - vaddr) / tables->ptr_size < count)
			words[(where - vaddr) / tables->ptr_size] = value;
	return true;
}

/* The header. */

static bool read_magic(struct go_tables *tables, struct cursor *c)
{
	static const uint32_t magics[] = {
		[GO_1_2] = 0xfffffffb,
		[GO_1_16] = 0xfffffffa,
		[GO_1_18] = 0xfffffff0,
		[GO_1_20] = 0xfffffff1,
	};
	uint32_t magic = cursor_u32(c);
	size_t version = 0;

	while (version < sizeof(magics) / sizeof(magics[0]) && magics[version] != magic)
		version++;
	tables->version = (enum go_version)version;
	return version < sizeof(magics) / sizeof(magics[0]) && cursor_u16(c) == 0;
}

unsigned go_tables_functab_field(const struct go_tables *tables)
{
	return tables->version >= GO_1_18 ? 4 : tables->ptr_size;
}

static void place_old(struct go_tables *tables, struct cursor *c)
{
	uint64_t functab = cursor_offset(c);
	struct cursor files = go_tables_at(tables, tables->whole, functab);

	cursor_skip(&files, (2 * tables->nfunc + 1) * tables->ptr_size);
	tables->files = span_from(tables->whole, cursor_u32(&files));
	tables->names = tables->pcs = tables->cus = tables->whole;
	tables->funcs = span_from(tables->whole, functab);
}

static void place(struct go_tables *tables, struct cursor *c)
{
	struct span *const spans[] = {&tables->names, &tables->cus, &tables->files, &tables->pcs, &tables->funcs};

	cursor_uint(c, tables->ptr_size); /* number of files */
	if (tables->version >= GO_1_18)
		tables->text = cursor_uint(c, tables->ptr_size); /* 0 since 1.26, and where it is a relocation */
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		*spans[i] = span_from(tables->whole, cursor_uint(c, tables->ptr_size));
}

/* True when the bytes start with a header, and all its tables are there. */
static bool read_header(struct go_tables *tables, struct span whole)
{
	struct cursor c;

	tables->whole = whole;
	tables->text = 0;
	c = go_tables_at(tables, whole, 0);
	if (!read_magic(tables, &c))
		return false;
	tables->quantum = cursor_u8(&c);
	if ((tables->quantum != 1 && tables->quantum != 2 && tables->quantum != 4) || cursor_u8(&c) != tables->ptr_size)
		return false;
	tables->nfunc = cursor_uint(&c, tables->ptr_size);
	if (tables->nfunc == 0 || tables->nfunc > whole.len / (2 * go_tables_functab_field(tables)))
		return false;
	if (tables->version == GO_1_2)
		place_old(tables, &c);
	else
		place(tables, &c);
	return !c.bad && tables->names.data && tables->cus.data && tables->files.data && tables->pcs.data &&
	       tables->funcs.len / go_tables_functab_field(tables) > 2 * tables->nfunc;
}

/* If the system's linker made it, a position-independent program has the tables somewhere in .data.rel.ro. */
static bool search_header(struct go_tables *tables, struct span bytes, void *arg)
{
	size_t last = tables->big_endian ? 3 : 0;

	for (size_t at = 0; at + HEADER_FIXED <= bytes.len; at += tables->ptr_size) {
		const uint8_t *p = bytes.data + at;

		if (p[3 - last] == 0xff && p[1] == 0xff && p[2] == 0xff && p[last] >= 0xf0 && p[4] == 0 &&
		    read_header(tables, span_from(bytes, at)))
			return true;
	}
	return false;
}

/* Avoids searching every library of a C program: section headers show whether it is Go; without them it is searched. */
static bool may_be_go(struct image *image)
{
	static const char *const marks[] = {".go.buildinfo", ".note.go.buildid", ".noptrdata"};

	if (image_nsections(image) <= 1)
		return true;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (image_section(image, marks[i]).data)
			return true;
	return false;
}

static bool find_header(struct go_tables *tables)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct span section = image_section(tables->image, names[i]);

		if (section.data && read_header(tables, section))
			return true;
	}
	return may_be_go(tables->image) && each_segment(tables, PF_R, search_header, NULL);
}

/* runtime.moduledata, which points at the header and at each table. */

static bool is_module(const struct go_tables *tables, const uint64_t *words)
{
	return words[MODULE_HEADER] == tables->whole.vaddr && words[MODULE_NAMES] == tables->names.vaddr &&
	       words[MODULE_CUS] == tables->cus.vaddr && words[MODULE_FILES] == tables->files.vaddr &&
	       words[MODULE_PCS] == tables->pcs.vaddr && words[MODULE_FUNCS] == tables->funcs.vaddr;
}

static bool try_module(struct go_tables *tables, uint64_t vaddr, unsigned *tries)
{
	if ((*tries)++ >= MAX_CANDIDATES || !read_words(tables, vaddr, GO_MODULE_WORDS, tables->module))
		return false;
	tables->has_module = is_module(tables, tables->module);
	return tables->has_module;
}

static bool search_module(struct go_tables *tables, struct span bytes, void *arg)
{
	uint8_t pattern[8];
	unsigned *tries = arg;

	store(tables, pattern, tables->whole.vaddr);
	for (size_t at = 0; at + tables->ptr_size <= bytes.len && *tries < MAX_CANDIDATES; at += tables->ptr_size)
		if (memcmp(bytes.data + at, pattern, tables->ptr_size) == 0 &&
		    try_module(tables, bytes.vaddr + at, tries))
			return true;
	return false;
}

static void find_module(struct go_tables *tables)
{
	struct cursor c = relocations(tables);
	uint64_t where, value;
	unsigned tries = 0;

	while (tries < MAX_CANDIDATES && next_relative(tables, &c, &where, &value))
		if (value == tables->whole.vaddr && try_module(tables, where, &tries))
			return;
	tries = 0;
	each_segment(tables, PF_W, search_module, &tries);
}

static uint32_t first_offset(const struct go_tables *tables, uint64_t index)
{
	struct cursor c = go_tables_at(tables, tables->funcs, 2 * index * go_tables_functab_field(tables));

	return cursor_u32(&c);
}

/*
 * Offsets count from runtime.text, which is the start of .text only when no C code was linked in. A program whose code
 * is laid out in several parts has gaps that the offsets do not: it is refused rather than named wrongly.
 */
static int find_text(struct go_tables *tables, struct err *err)
{
	const uint64_t *module = tables->module;
	uint64_t header = tables->whole.vaddr + HEADER_FIXED + 2 * tables->ptr_size;

	find_module(tables);
	if (!tables->has_module) {
		if (!tables->text)
			read_words(tables, header, 1, &tables->text);
		return tables->text ? 0 : err_set(err, EBADMSG, "the start of its Go code is not known");
	}
	tables->text = module[MODULE_TEXT];
	if (tables->text + first_offset(tables, 0) != module[MODULE_MIN_PC] ||
	    tables->text + first_offset(tables, tables->nfunc) != module[MODULE_MAX_PC])
		return err_set(err, EBADMSG, "its Go code is not in one piece");
	return 0;
}

static int open_tables(struct go_tables *tables, struct err *err)
{
	int ret;

	if (!find_header(tables))
		return err_set(err, ENOENT, "it has no Go tables");
	if (tables->version >= GO_1_18)
		return find_text(tables, err);
	ret = relocate(tables, err);
	if (ret == 0 && tables->relocated && !read_header(tables, tables->whole))
		ret = err_set(err, EBADMSG, "its Go tables are damaged");
	return ret;
}

int go_tables_init(struct go_tables *tables, struct image *image, struct budget *budget, struct err *err)
{
	int ret;

	*tables = (struct go_tables){
		.image = image,
		.budget = budget,
		.big_endian = image_is_big_endian(image),
		.ptr_size = image_is_64bit(image) ? 8 : 4,
	};
	ret = open_tables(tables, err);
	if (budget && budget->refused)
		ret = err_set(err, EBUSY, "it takes too long to find its Go tables");
	tables->budget = NULL;
	if (ret < 0)
		go_tables_deinit(tables);
	return ret;
}

void go_tables_deinit(struct go_tables *tables)
{
	free(tables->relocated);
	tables->relocated = NULL;
}
