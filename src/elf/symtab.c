/* SPDX-License-Identifier: MIT */
#include "elf/symtab.h"

#include <errno.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/dynsym.h"
#include "elf/minidebug.h"
#include "elf/plt.h"
#include "elf/symrecords.h"

struct entry {
	uint64_t start;
	uint64_t end;
	const char *name; /* in the file's string table */
	uint32_t name_len;
	uint8_t rank;   /* among names of one address; the lowest is the best */
	uint8_t source; /* enum symbol_source */
	bool sized;
	bool own;
};

struct symtab {
	VEC_FIELDS(struct entry);
	struct pieces pieces; /* which entry is visible where */
	bool has_locals;
	struct image *minidebug;
	uint8_t *minidebug_data;
};

struct section {
	uint64_t start;
	uint64_t end;
	bool code;
};

/* One ELF file while it is read. */
struct reader {
	struct symtab *tab;
	VEC(struct section) sections; /* by section number */
	bool has_table;
	bool minidebug;
	bool own;
	enum symbol_source source; /* of the table being read */
	uint64_t budget;           /* see symrecords.h */
};

static void cleanup_reader(struct reader *reader)
{
	vec_deinit(&reader->sections);
}

DEFINE_CLEANUP(symtab, struct symtab *, symtab_destroy)

static uint8_t rank_of(const Elf64_Sym *sym, const char *name, size_t len)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	unsigned bind = ELF64_ST_BIND(sym->st_info);
	unsigned underscores = 0;

	while (underscores < 15 && underscores < len && name[underscores] == '_')
		underscores++;
	return (uint8_t)((type == STT_NOTYPE) << 6 | (bind == STB_LOCAL) << 5 | underscores << 1 | (bind == STB_WEAK));
}

/* Labels that compilers and assemblers leave behind: $x and $d tell aarch64 code from data, the others are notes. */
static bool is_noise(const Elf64_Sym *sym, const char *name, size_t len)
{
	if (!len)
		return true;
	return ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE && ELF64_ST_BIND(sym->st_info) == STB_LOCAL &&
	       (*name == '$' || *name == '.');
}

/* The length without a version: "foo@VER", "foo@@VER". */
static uint32_t name_length(const char *name, size_t len)
{
	const char *at = len ? memchr(name + 1, '@', len - 1) : NULL;

	return (uint32_t)(at ? (size_t)(at - name) : len);
}

static uint64_t end_of(uint64_t start, uint64_t size, uint64_t limit)
{
	return size > limit - start ? limit : start + size;
}

static bool may_be_code(const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && sym->st_shndx != SHN_UNDEF;
}

/* Takes the symbol when it names code. False only when memory is exhausted. */
static bool add_symbol(struct reader *reader, const Elf64_Sym *sym, const char *name, size_t len)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	uint64_t limit = UINT64_MAX;
	struct entry e;

	if (!may_be_code(sym) || is_noise(sym, name, len))
		return true;
	if (sym->st_shndx < reader->sections.len) {
		const struct section *section = &reader->sections.data[sym->st_shndx];

		if (!section->code || sym->st_value < section->start || sym->st_value >= section->end)
			return true;
		limit = section->end;
	} else if (type == STT_NOTYPE || sym->st_size == 0) {
		return true; /* nothing says that it is code, or where it ends */
	}
	if (ELF64_ST_BIND(sym->st_info) == STB_LOCAL)
		reader->tab->has_locals = true;
	/* Without a size it ends with its section until settle() has seen the next symbol. */
	e = (struct entry){
		.start = sym->st_value,
		.end = sym->st_size ? end_of(sym->st_value, sym->st_size, limit) : limit,
		.name = name,
		.name_len = name_length(name, len),
		.rank = rank_of(sym, name, len),
		.source = (uint8_t)reader->source,
		.sized = sym->st_size != 0,
		.own = reader->own,
	};
	return vec_push(reader->tab, e);
}

static bool add_dynamic(void *ctx, const Elf64_Sym *sym, const char *name, size_t len)
{
	return add_symbol(ctx, sym, name, len);
}

static bool add_plt(void *ctx, uint64_t start, uint64_t end, const char *name)
{
	struct symtab *tab = ctx;
	struct entry e = {
		.start = start,
		.end = end,
		.name = name,
		.name_len = name_length(name, strnlen(name, SYMRECORDS_MAX_NAME)),
		.source = SYMBOL_PLT,
		.sized = true,
		.own = true,
	};

	return vec_push(tab, e);
}

static bool read_table(struct reader *reader, struct image *image, size_t section)
{
	struct symrecords table = symrecords_init(image, section, &reader->budget);
	Elf64_Sym sym;
	size_t len;

	reader->has_table = true;
	symrecords_seek(&table, 1);
	while (symrecords_next(&table, &sym)) {
		const char *name = may_be_code(&sym) ? symrecords_name(&table, &sym, &len) : NULL;

		if (name && !add_symbol(reader, &sym, name, len))
			return false;
	}
	return true;
}

static bool read_sections(struct reader *reader, const struct image *image)
{
	const Elf64_Shdr *shdr;

	if (!vec_push(&reader->sections, (struct section){0}))
		return false;
	for (size_t i = 1; (shdr = image_shdr(image, i)); i++) {
		struct section section = {
			.start = shdr->sh_addr,
			.end = end_of(shdr->sh_addr, shdr->sh_size, UINT64_MAX),
			.code = shdr->sh_flags & SHF_EXECINSTR,
		};

		if (!vec_push(&reader->sections, section))
			return false;
	}
	return true;
}

static bool read_tables(struct reader *reader, struct image *image)
{
	const Elf64_Shdr *shdr;

	reader->budget = symrecords_budget(image);
	if (!read_sections(reader, image))
		return false;
	for (size_t i = 1; (shdr = image_shdr(image, i)); i++) {
		if (shdr->sh_type != SHT_SYMTAB && shdr->sh_type != SHT_DYNSYM)
			continue;
		reader->source = reader->minidebug             ? SYMBOL_MINIDEBUG
				 : shdr->sh_type == SHT_SYMTAB ? SYMBOL_SYMTAB
							       : SYMBOL_DYNSYM;
		if (!read_table(reader, image, i))
			return false;
	}
	return true;
}

static bool read_minidebug(struct symtab *tab, struct image *image, bool own)
{
	_cleanup_(cleanup_reader) struct reader reader = {.tab = tab, .minidebug = true, .own = own};
	size_t len;

	if (tab->minidebug_data || minidebug_unpack(image, NULL, &tab->minidebug_data, &len) < 0)
		return true;
	if (image_open_memory(tab->minidebug_data, len, NULL, &tab->minidebug) < 0)
		return true;
	return read_tables(&reader, tab->minidebug);
}

static bool read_image(struct symtab *tab, struct image *image, bool own)
{
	_cleanup_(cleanup_reader) struct reader reader = {.tab = tab, .own = own};

	if (!read_tables(&reader, image))
		return false;
	if (!reader.has_table) {
		reader.source = SYMBOL_DYNSYM;
		reader.sections.len = 0; /* section numbers in these symbols refer to headers that are not there */
		if (!dynsym_read(image, add_dynamic, &reader))
			return false;
	}
	return read_minidebug(tab, image, own);
}

/* Orders the names of one address, the best first. */
static int compare(const struct symtab *tab, const struct interval *a, const struct interval *b)
{
	const struct entry *x = &tab->data[a->id];
	const struct entry *y = &tab->data[b->id];
	int order;

	if (x->sized != y->sized)
		return x->sized ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->name_len != y->name_len)
		return x->name_len < y->name_len ? -1 : 1;
	order = memcmp(x->name, y->name, x->name_len);
	if (order == 0 && x->own != y->own)
		return x->own ? -1 : 1;
	return order != 0 ? order : (int)x->source - (int)y->source;
}

static void sift_down(const struct symtab *tab, struct interval *group, size_t at, size_t len)
{
	for (size_t child; (child = 2 * at + 1) < len; at = child) {
		struct interval top = group[at];

		if (child + 1 < len && compare(tab, &group[child], &group[child + 1]) < 0)
			child++;
		if (compare(tab, &top, &group[child]) >= 0)
			return;
		group[at] = group[child];
		group[child] = top;
	}
}

/*
 * A heap sort, which stays within the group whatever the comparison says. qsort() need not: names that change while
 * being compared can each come before the other.
 */
static void sort_group(const struct symtab *tab, struct interval *group, size_t len)
{
	for (size_t i = len / 2; i-- > 0;)
		sift_down(tab, group, i, len);
	for (size_t end = len; end-- > 1;) {
		struct interval first = group[0];

		group[0] = group[end];
		group[end] = first;
		sift_down(tab, group, 0, end);
	}
}

/*
 * Adds the names of one address to `out`, the best last: so it is visible, and a lesser one only where it reaches
 * further.
 */
static bool add_group(struct symtab *tab, struct interval *group, size_t len, uint64_t next, struct intervals *out)
{
	sort_group(tab, group, len);
	for (size_t i = len; i-- > 0;) {
		struct entry *e = &tab->data[group[i].id];

		if (!e->sized && e->end > next)
			e->end = next; /* an unsized symbol reaches to the next one */
		if (!intervals_add(out, e->start, e->end, group[i].id, e->sized))
			return false;
	}
	return true;
}

static bool settle(struct symtab *tab)
{
	struct intervals all = {0}, kept = {0};
	bool ok = vec_reserve(&all, tab->len) && vec_reserve(&kept, tab->len);

	for (size_t i = 0; ok && i < tab->len; i++)
		ok = intervals_add(&all, tab->data[i].start, tab->data[i].end, (uint32_t)i, 0);
	ok = ok && intervals_sort(&all);
	for (size_t i = 0, end; ok && i < all.len; i = end) {
		for (end = i + 1; end < all.len && all.data[end].start == all.data[i].start;)
			end++;
		ok = add_group(tab, &all.data[i], end - i, end < all.len ? all.data[end].start : UINT64_MAX, &kept);
	}
	ok = ok && intervals_flatten(&kept, &tab->pieces);
	vec_deinit(&all);
	vec_deinit(&kept);
	return ok;
}

int symtab_create(struct image *image, struct image *debug, struct err *err, struct symtab **out)
{
	_cleanup_(cleanup_symtab) struct symtab *tab = calloc(1, sizeof(*tab));

	if (!tab || !read_image(tab, image, true) || (debug && !read_image(tab, debug, false)) ||
	    !plt_read(image, add_plt, tab) || !settle(tab))
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(tab);
	return 0;
}

void symtab_destroy(struct symtab *tab)
{
	if (!tab)
		return;
	image_destroy(tab->minidebug);
	free(tab->minidebug_data);
	vec_deinit(&tab->pieces);
	vec_deinit(tab);
	free(tab);
}

struct symbol symtab_at(const struct symtab *tab, size_t index)
{
	const struct entry *e = &tab->data[index];

	return (struct symbol){
		.start = e->start,
		.end = e->end,
		.name = e->name,
		.name_len = e->name_len,
		.source = (enum symbol_source)e->source,
		.own = e->own,
	};
}

bool symtab_find(const struct symtab *tab, uint64_t vaddr, struct symbol *out)
{
	uint32_t index = pieces_find(&tab->pieces, vaddr);

	if (index == PIECE_NONE)
		return false;
	*out = symtab_at(tab, index);
	return true;
}

const struct pieces *symtab_pieces(const struct symtab *tab)
{
	return &tab->pieces;
}

size_t symtab_len(const struct symtab *tab)
{
	return tab->len;
}

bool symtab_has_locals(const struct symtab *tab)
{
	return tab->has_locals;
}
