/* SPDX-License-Identifier: MIT */
#include "symbol/source_go.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "elf/go_funcs.h"

enum {
	MAX_INLINED = 256,    /* calls at one address */
	MAX_LOOKED_AT = 8192, /* functions to try, in search of some with inlined calls */
	ENOUGH_CHECKED = 16,  /* so many functions whose inlined calls make sense are enough */
	MAX_SHORTENED = 4096, /* bytes of a name that is copied */
	FIRST_GOFUNC = 30,    /* words of runtime.moduledata, one of which is the address of go:func.* */
};

/* Limits on bytes read of tables by address, which functions may share: to find the layout, and to name one address. */
enum { LAYOUT_BUDGET = 16 << 20, LOOKUP_BUDGET = 8 << 20 };

/* How the calls inlined into a function are stored: as a tree, with an index into it for each address. */
struct inline_layout {
	enum go_version version;
	uint8_t funcdata; /* index of the tree */
	uint8_t pcdata;   /* index of the table of indices */
	uint8_t size;     /* of an entry of the tree, and offsets of its fields */
	uint8_t name;
	uint8_t parent_pc; /* where the call was, from the function's start; 0: given by the fields below */
	uint8_t parent;
	uint8_t file;
	uint8_t line;
	bool wide_count; /* the number of trees and so on is a word, not a byte */
};

/* One magic number stands for several layouts: we take the first whose trees make sense. */
static const struct inline_layout layouts[] = {
	{GO_1_20, 3, 2, 16, .name = 4, .parent_pc = 8},
	{GO_1_18, 3, 2, 20, .name = 12, .parent_pc = 16},
	{GO_1_16, 3, 2, 20, .name = 12, .parent_pc = 16},
	{GO_1_2, 4, 2, 20, .name = 12, .parent_pc = 16},                          /* 1.13 */
	{GO_1_2, 2, 1, 20, .name = 12, .parent_pc = 16},                          /* 1.12 */
	{GO_1_2, 2, 1, 16, .name = 12, .file = 4, .line = 8, .wide_count = true}, /* 1.9 */
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

struct go_source {
	struct go_tables tables;
	const struct inline_layout *layout; /* NULL: nothing was ever inlined */
	bool has_trees;                     /* their place is known */
	struct arena *arena;                /* names that are shown in another form */
	uint64_t gofunc;                    /* what their offsets are relative to; 0 before 1.18 */
};

static uint32_t pcdata_table(const struct go_func *f, unsigned index)
{
	struct cursor c = f->pcdata;

	cursor_skip(&c, 4 + 4 * (uint64_t)index);
	return index < f->npcdata ? cursor_u32(&c) : 0;
}

static const char *file_at(const struct go_tables *t, const struct go_func *f, int32_t number)
{
	struct cursor c =
		go_tables_at(t, t->version == GO_1_2 ? t->files : t->cus, 4 * ((uint64_t)f->cu + (uint32_t)number));
	uint32_t offset = cursor_u32(&c);

	if (c.bad || number < 0)
		return NULL;
	return go_string_at(t, t->version == GO_1_2 ? t->whole : t->files, offset);
}

static void set_position(const struct go_tables *t, const struct go_func *f, uint64_t vaddr, struct call *call)
{
	int32_t line = go_value_at(t, f, f->pcln, vaddr);

	call->file = file_at(t, f, go_value_at(t, f, f->pcfile, vaddr));
	call->line = call->file && line > 0 ? (uint32_t)line : 0;
}

/* Inlined calls. */

struct inlined_call {
	const char *name;
	uint64_t pc; /* of the call */
	int32_t parent;
	int32_t file;
	int32_t line;
};

/* The address of the function's tree; 0 when it has none. */
static uint64_t find_tree(const struct go_source *source, const struct inline_layout *layout, const struct go_func *f,
			  uint64_t gofunc)
{
	const struct go_tables *t = &source->tables;
	struct cursor c = f->pcdata;
	uint32_t count, offset;

	if (layout->wide_count) {
		count = cursor_u32(&c);
	} else {
		cursor_skip(&c, 3); /* the function's id, flags */
		count = cursor_u8(&c);
	}
	cursor_skip(&c, 4 * (uint64_t)f->npcdata);
	if (layout->funcdata >= count)
		return 0;
	if (t->version >= GO_1_18) {
		cursor_skip(&c, 4 * layout->funcdata);
		offset = cursor_u32(&c);
		return c.bad || offset == UINT32_MAX ? 0 : gofunc + offset;
	}
	if (t->ptr_size == 8 && (t->whole.vaddr + (uint64_t)(c.p - t->whole.data)) % 8)
		cursor_skip(&c, 4);
	cursor_skip(&c, (uint64_t)t->ptr_size * layout->funcdata);
	return cursor_uint(&c, t->ptr_size);
}

static bool read_inlined(const struct go_tables *t, const struct inline_layout *layout, const struct go_func *f,
			 uint64_t tree, int32_t index, struct inlined_call *out)
{
	struct cursor entry = go_tables_memory(t, tree + (uint64_t)index * layout->size);
	struct cursor c = cursor_take(&entry, layout->size);

	*out = (struct inlined_call){0};
	cursor_seek(&c, layout->name);
	out->name = go_name_at(t, cursor_u32(&c));
	if (layout->parent_pc) {
		cursor_seek(&c, layout->parent_pc);
		out->pc = f->start + cursor_u32(&c);
		return !c.bad && out->name && out->pc < f->end;
	}
	cursor_seek(&c, layout->parent);
	out->parent = (int32_t)cursor_u32(&c);
	cursor_seek(&c, layout->file);
	out->file = (int32_t)cursor_u32(&c);
	out->line = (int32_t)cursor_u32(&c);
	return !c.bad && out->name && out->parent < index && out->file >= 0 && out->line >= 0;
}

/* Names of functions have their package in front, and in the new layouts each follows the end of another. */
static bool is_plausible(const struct go_tables *t, const struct inlined_call *inlined)
{
	const uint8_t *name = (const uint8_t *)inlined->name;

	if (name[0] <= ' ' || !strchr(inlined->name, '.'))
		return false;
	return t->version == GO_1_2 || name == t->names.data || name[-1] == 0;
}

/* How many functions have a tree that makes sense; 0 when one does not. */
static unsigned count_good_trees(const struct go_source *source, const struct inline_layout *layout, uint64_t gofunc,
				 uint64_t *budget)
{
	const struct go_tables *t = &source->tables;
	unsigned good = 0;

	for (uint64_t i = 0; i < t->nfunc && i < MAX_LOOKED_AT && good < ENOUGH_CHECKED; i++) {
		struct inlined_call inlined;
		struct go_values v;
		struct go_func f;
		uint64_t tree;

		if (!go_func_nth(t, i, budget, &f))
			continue;
		tree = find_tree(source, layout, &f, gofunc);
		v = go_values(t, &f, pcdata_table(&f, layout->pcdata));
		while (tree && go_values_next(t, &v) && v.end <= f.end) {
			if (v.value < 0)
				continue;
			if (!read_inlined(t, layout, &f, tree, v.value, &inlined) || !is_plausible(t, &inlined))
				return 0;
			good += (const uint8_t *)inlined.name != t->names.data; /* which zeros lead to, too */
		}
	}
	return good;
}

static void choose_layout(struct go_source *source)
{
	const struct go_tables *t = &source->tables;
	size_t last = t->has_module ? GO_MODULE_WORDS : FIRST_GOFUNC + 1;
	uint64_t budget = LAYOUT_BUDGET;

	for (size_t i = 0; i < LAYOUTS; i++) {
		if (layouts[i].version != t->version)
			continue;
		if (!source->layout && t->version != GO_1_2)
			source->layout = &layouts[i]; /* it still shows whether something was inlined */
		for (size_t word = FIRST_GOFUNC; word < last; word++) {
			uint64_t gofunc = t->version >= GO_1_18 ? t->module[word] : 0;

			if ((t->version >= GO_1_18 && !t->has_module) ||
			    !count_good_trees(source, &layouts[i], gofunc, &budget))
				continue;
			source->layout = &layouts[i];
			source->gofunc = gofunc;
			source->has_trees = true;
			return;
		}
	}
}

/* A copy, because it is read more than once and must not change meanwhile. */
static const char *keep(const struct go_source *source, const char *text)
{
	return text ? arena_intern_n(source->arena, text, GO_NAME_MAX) : NULL;
}

/* Since 1.21 the tables spell out the types of an instance; the runtime still prints f[...]. */
static const char *shown_name(const struct go_source *source, const char *text)
{
	const char *name = keep(source, text);
	const char *open = name ? strchr(name, '[') : NULL;
	const char *close = open ? strrchr(open, ']') : NULL;

	if (!close || (size_t)(open - name) + strlen(close) > MAX_SHORTENED)
		return name;
	return arena_printf(source->arena, "%.*s[...]%s", (int)(open - name), name, close + 1);
}

/* The calls that were inlined at an address; the position in the function itself is left in `outer`. */
static bool push_inlined(const struct go_source *source, const struct go_func *f, uint64_t vaddr, struct calls *out,
			 struct call *outer)
{
	const struct go_tables *t = &source->tables;
	const struct inline_layout *layout = source->layout;
	uint64_t tree = layout && source->has_trees ? find_tree(source, layout, f, source->gofunc) : 0;
	int32_t index = layout ? go_value_at(t, f, pcdata_table(f, layout->pcdata), vaddr) : -1;
	struct inlined_call inlined;

	set_position(t, f, vaddr, outer);
	while (index >= 0) {
		struct call call = {.file = keep(source, outer->file), .line = outer->line};

		outer->file = NULL;
		outer->line = 0;
		if (!tree || out->len >= MAX_INLINED || !read_inlined(t, layout, f, tree, index, &inlined))
			return vec_push(out, call); /* something was inlined there, but we do not know what */
		call.name = shown_name(source, inlined.name);
		call.source = SYMBOL_GO;
		if (!vec_push(out, call))
			return false;
		if (layout->parent_pc) {
			index = go_value_at(t, f, pcdata_table(f, layout->pcdata), inlined.pc);
			set_position(t, f, inlined.pc, outer);
		} else {
			index = inlined.parent;
			outer->file = file_at(t, f, inlined.file);
			outer->line = outer->file ? (uint32_t)inlined.line : 0;
		}
	}
	return true;
}

bool go_source_find(struct go_source *source, uint64_t vaddr, struct calls *out)
{
	struct call call = {.source = SYMBOL_GO, .has_start = true};
	uint64_t budget = LOOKUP_BUDGET;
	struct go_func f;

	out->len = 0;
	if (!go_func_find(&source->tables, vaddr, &budget, &f))
		return false;
	if (f.pcln && go_value_at(&source->tables, &f, f.pcln, vaddr) < 0)
		return false; /* padding up to the next function */
	call.name = shown_name(source, go_name_at(&source->tables, f.name));
	call.start = f.start;
	if (!call.name || !push_inlined(source, &f, vaddr, out, &call))
		return false;
	call.file = keep(source, call.file);
	return vec_push(out, call);
}

DEFINE_CLEANUP(go_source, struct go_source *, go_source_destroy)

int go_source_create(struct image *image, struct err *err, struct go_source **out)
{
	_cleanup_(cleanup_go_source) struct go_source *source = calloc(1, sizeof(*source));
	int ret;

	if (source)
		source->arena = arena_create();
	if (!source || !source->arena)
		return err_set(err, ENOMEM, "out of memory");
	ret = go_tables_init(&source->tables, image, NULL, err);
	if (ret < 0)
		return ret;
	choose_layout(source);
	*out = steal_ptr(source);
	return 0;
}

void go_source_destroy(struct go_source *source)
{
	if (!source)
		return;
	go_tables_deinit(&source->tables);
	arena_destroy(source->arena);
	free(source);
}

static bool find(void *source, uint64_t address, struct calls *out)
{
	return go_source_find(source, address, out);
}

static void destroy(void *source)
{
	go_source_destroy(source);
}

const struct source_ops go_source_ops = {.find = find, .destroy = destroy};
