/* SPDX-License-Identifier: MIT */
#include "dwarf/functions.h"

#include <dwarf.h>

#include "base/intervals.h"
#include "dwarf/rangelist.h"

enum {
	MAX_NESTING = 256,
	MAX_INTERVALS = 1 << 24,
};

/* What contains an entry's children. */
struct level {
	uint32_t scope; /* MAP_NONE: in no function */
	uint32_t depth; /* of functions and inlined calls */
	bool dropped;   /* in a function that the linker dropped: its addresses mean nothing */
};

struct walk {
	struct functions *out;
	const struct unit_view *view;
	const struct code_bounds *code;
	struct intervals intervals;
	struct pc_ranges ranges; /* of the entry being looked at */
	bool plain_c;            /* no functions in types */
	unsigned depth;
	struct level levels[MAX_NESTING];
};

static bool is_type(uint32_t tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_class_type;
}

static bool is_plain_c(const struct value *language)
{
	uint64_t number;

	if (!value_number(language, &number))
		return false;
	return number == DW_LANG_C || number == DW_LANG_C89 || number == DW_LANG_C99 || number == DW_LANG_C11 ||
	       number == DW_LANG_Mips_Assembler;
}

/* The entry that names the call: itself, or the one it is an instance of. False when memory is exhausted. */
static bool place_name(struct walk *w, uint64_t offset, const struct entry *entry, uint32_t *name)
{
	const struct dwarf_file *file = w->view->file;
	uint64_t at;

	if (entry->abbrev->kind == ABBREV_INLINED &&
	    !value_reference(w->view, entry_value(entry, ATTR_ORIGIN), &file, &offset)) {
		*name = MAP_NONE;
		return true;
	}
	if (file == w->view->file && offset >= w->view->unit.offset && offset < w->view->unit.end &&
	    offset - w->view->unit.offset < FUNCTIONS_ELSEWHERE) {
		*name = (uint32_t)(offset - w->view->unit.offset);
		return true;
	}
	at = file == w->view->file ? offset : offset | FUNCTIONS_ALT;
	*name = FUNCTIONS_ELSEWHERE | (uint32_t)w->out->elsewhere.len;
	return vec_push(&w->out->elsewhere, at);
}

static uint32_t small_number(const struct value *value, uint32_t max, uint32_t otherwise)
{
	uint64_t number;

	return value_number(value, &number) && number < max ? (uint32_t)number : otherwise;
}

static uint32_t entry_point(const struct walk *w, const struct entry *entry)
{
	uint64_t at = w->ranges.data[0].start;

	if (entry_has(entry, ATTR_ENTRY_PC)) {
		uint64_t offset;

		/* DWARF 5 allows an offset from the low pc. */
		if (value_number(entry_value(entry, ATTR_ENTRY_PC), &offset))
			at += offset;
		else
			value_address(w->view, entry_value(entry, ATTR_ENTRY_PC), &at);
	}
	return is_code(w->code, at) && at - w->code->start < MAP_NONE ? (uint32_t)(at - w->code->start) : MAP_NONE;
}

static bool add_scope(struct walk *w, uint64_t offset, const struct entry *entry, struct level *level)
{
	bool inlined = entry->abbrev->kind == ABBREV_INLINED;
	struct map_scope scope = {.parent = inlined ? level->scope : MAP_NONE, .file = MAP_NO_FILE};

	if (!place_name(w, offset, entry, &scope.name))
		return false;
	if (inlined) {
		scope.at = small_number(entry_value(entry, ATTR_CALL_LINE), UINT32_MAX, 0);
		scope.file = (uint16_t)small_number(entry_value(entry, ATTR_CALL_FILE), MAP_NO_FILE, MAP_NO_FILE);
		scope.column = (uint16_t)small_number(entry_value(entry, ATTR_CALL_COLUMN), UINT16_MAX, 0);
	} else {
		scope.at = entry_point(w, entry);
	}
	level->scope = (uint32_t)w->out->scopes.len;
	level->depth++;
	for (size_t i = 0; i < w->ranges.len && w->intervals.len < MAX_INTERVALS; i++) {
		const struct pc_range *range = &w->ranges.data[i];
		uint64_t end = range->end < w->code->end ? range->end : w->code->end;

		if (is_code(w->code, range->start) &&
		    !intervals_add(&w->intervals, range->start, end, level->scope, level->depth))
			return false;
	}
	return vec_push(&w->out->scopes, scope);
}

/*
 * A function or an inlined call. A function without code is a declaration, or one that others are instances of. An
 * inlined call without code of its own may still contain other inlined calls.
 */
static bool visit_code(struct walk *w, uint64_t offset, struct cursor *c, const struct abbrev *abbrev,
		       struct level *level)
{
	bool inlined = abbrev->kind == ABBREV_INLINED;
	struct entry entry;

	if (!entry_read(w->view, c, abbrev, &entry)) {
		cursor_fail(c);
		return true;
	}
	if (!entry_ranges(w->view, &entry, &w->ranges))
		return false;
	if (!inlined) {
		level->scope = MAP_NONE;
		level->dropped = w->ranges.len && !is_code(w->code, w->ranges.data[0].start);
	}
	if (level->dropped || (inlined ? level->scope == MAP_NONE : !w->ranges.len))
		return true;
	return add_scope(w, offset, &entry, level);
}

/* False when memory is exhausted. */
static bool visit(struct walk *w, struct cursor *c)
{
	uint64_t offset = cursor_offset(c), code = cursor_uleb(c), sibling = 0;
	const struct abbrev *abbrev;
	struct level level;

	if (code == 0) {
		w->depth--;
		return true;
	}
	abbrev = abbrevs_find(&w->view->abbrevs, code);
	if (!abbrev) {
		cursor_fail(c);
		return true;
	}
	level = w->levels[w->depth - 1];
	if (abbrev->kind == ABBREV_FUNCTION || abbrev->kind == ABBREV_INLINED) {
		if (!visit_code(w, offset, c, abbrev, &level))
			return false;
	} else if (!entry_skip(w->view, c, abbrev, &sibling)) {
		cursor_fail(c);
	}
	if (!abbrev->has_children)
		return true;
	/* Following a link backwards would never end. */
	if (sibling > cursor_offset(c) && (abbrev->kind == ABBREV_DATA || (w->plain_c && is_type(abbrev->tag)))) {
		cursor_seek(c, sibling);
		return true;
	}
	if (w->depth == MAX_NESTING)
		cursor_fail(c);
	else
		w->levels[w->depth++] = level;
	return true;
}

static bool flatten(struct walk *w)
{
	struct pieces pieces = {0};
	bool ok = intervals_flatten(&w->intervals, &pieces) && vec_reserve(&w->out->pieces, pieces.len);

	for (size_t i = 0; ok && i < pieces.len; i++)
		w->out->pieces.data[w->out->pieces.len++] = (struct map_piece){
			.start = (uint32_t)(pieces.data[i].start - w->code->start),
			.scope = pieces.data[i].id,
		};
	vec_deinit(&pieces);
	return ok;
}

bool functions_read(struct functions *functions, const struct unit_view *view, const struct code_bounds *code)
{
	struct walk w = {
		.out = functions,
		.view = view,
		.code = code,
		.ranges.budget = ranges_budget(view->file, view->ranges_file),
	};
	struct cursor c = unit_cursor(view, view->unit.dies);
	const struct abbrev *root = abbrevs_find(&view->abbrevs, cursor_uleb(&c));
	struct entry entry;
	bool ok = true;

	if (root && entry_read(view, &c, root, &entry) && root->has_children) {
		w.plain_c = is_plain_c(entry_value(&entry, ATTR_LANGUAGE));
		w.levels[w.depth++] = (struct level){.scope = MAP_NONE};
	}
	while (ok && w.depth && cursor_left(&c))
		ok = visit(&w, &c);
	ok = ok && flatten(&w);
	vec_deinit(&w.intervals);
	vec_deinit(&w.ranges);
	return ok;
}

void functions_deinit(struct functions *functions)
{
	vec_deinit(&functions->scopes);
	vec_deinit(&functions->pieces);
	vec_deinit(&functions->elsewhere);
}
