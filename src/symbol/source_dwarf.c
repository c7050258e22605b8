/* SPDX-License-Identifier: MIT */
#include "symbol/source_dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbol/ranges.h"

/* Damaged trees can be endless; real ones stay below these. */
enum {
	MAX_NESTING = 256,
	MAX_UNIT_DIES = 1 << 24,
	MAX_FUNCTION_DIES = 1 << 20,
	MAX_RANGES = 1 << 22,
	MAX_ADDRESS_OF_NOTHING = 1, /* linkers give 0 or 1 to functions that they dropped */
};

struct unit {
	Dwarf_Die die;
	bool indexed;
	VEC(Dwarf_Die) functions;
	struct ranges ranges; /* of the functions, by their number */
};

struct dwarf_source {
	Dwarf *dwarf;
	Dwarf *alt;
	VEC(struct unit) units;
	struct ranges ranges; /* of the units, by their number */
};

DEFINE_CLEANUP(dwarf_source, struct dwarf_source *, dwarf_source_destroy)

/* Adds every range of the DIE to the index. False when memory is exhausted. */
static bool add_ranges(struct ranges *ranges, Dwarf_Die *die, uint32_t id)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	while (ranges->len < MAX_RANGES && (next = dwarf_ranges(die, next, &base, &start, &end)) > 0)
		if (start > MAX_ADDRESS_OF_NOTHING && !ranges_add(ranges, start, end, id))
			return false;
	return true;
}

static bool index_units(struct dwarf_source *source)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	while (dwarf_get_units(source->dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		int tag = dwarf_tag(&die);

		if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
			continue;
		if (!vec_push(&source->units, (struct unit){.die = die}) ||
		    !add_ranges(&source->ranges, &die, (uint32_t)(source->units.len - 1)))
			return false;
	}
	return ranges_sort(&source->ranges);
}

int dwarf_source_create(struct image *image, struct image *alt, struct err *err, struct dwarf_source **out)
{
	_cleanup_(cleanup_dwarf_source) struct dwarf_source *source = NULL;

	if (!image_is_unpackable(image) || (alt && !image_is_unpackable(alt)))
		return err_set(err, E2BIG, "the compressed debug info is too large");
	if (!image_section(image, ".debug_info").data)
		return err_set(err, ENOENT, "there is no .debug_info");
	source = calloc(1, sizeof(*source));
	if (!source)
		return err_set(err, ENOMEM, "out of memory");
	source->dwarf = dwarf_begin_elf(image_elf(image), DWARF_C_READ, NULL);
	if (!source->dwarf)
		return err_set(err, EINVAL, "the debug info is damaged: %s", dwarf_errmsg(-1));
	if (alt) {
		source->alt = dwarf_begin_elf(image_elf(alt), DWARF_C_READ, NULL);
		if (!source->alt)
			return err_set(err, EINVAL, "the shared debug info is damaged: %s", dwarf_errmsg(-1));
		dwarf_setalt(source->dwarf, source->alt);
	}
	if (!index_units(source))
		return err_set(err, ENOMEM, "out of memory");
	*out = steal_ptr(source);
	return 0;
}

void dwarf_source_destroy(struct dwarf_source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->units.len; i++) {
		vec_deinit(&source->units.data[i].functions);
		ranges_deinit(&source->units.data[i].ranges);
	}
	vec_deinit(&source->units);
	ranges_deinit(&source->ranges);
	dwarf_end(source->dwarf);
	dwarf_end(source->alt);
	free(source);
}

/* The next sibling; a damaged link backwards ends the list, as it would never end itself. */
static bool next_sibling(Dwarf_Die *die)
{
	const void *here = die->addr;

	return dwarf_siblingof(die, die) == 0 && (uintptr_t)die->addr > (uintptr_t)here;
}

/* Functions lie in these, besides other functions: Rust puts them into types, C++ lambdas into blocks. */
static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/* False when memory is exhausted. */
static bool index_children(struct unit *unit, Dwarf_Die *parent, unsigned depth, uint32_t *budget)
{
	Dwarf_Die die;

	if (depth == MAX_NESTING || dwarf_child(parent, &die) != 0)
		return true;
	do {
		int tag = dwarf_tag(&die);

		if (*budget == 0)
			return true;
		(*budget)--;
		if (tag == DW_TAG_subprogram) {
			size_t before = unit->ranges.len;

			if (!add_ranges(&unit->ranges, &die, (uint32_t)unit->functions.len))
				return false;
			if (unit->ranges.len > before && !vec_push(&unit->functions, die))
				return false;
		}
		if (may_hold_functions(tag) && !index_children(unit, &die, depth + 1, budget))
			return false;
	} while (next_sibling(&die));
	return true;
}

static Dwarf_Die *find_function(struct unit *unit, uint64_t vaddr)
{
	uint32_t budget = MAX_UNIT_DIES;
	const struct range *range;

	if (!unit->indexed) {
		unit->indexed = true;
		if (!index_children(unit, &unit->die, 0, &budget) || !ranges_sort(&unit->ranges))
			ranges_deinit(&unit->ranges);
	}
	range = ranges_find(&unit->ranges, vaddr);
	return range ? &unit->functions.data[range->id] : NULL;
}

static const char *string_of(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, attribute, &attr) ? dwarf_formstring(&attr) : NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &attr) || dwarf_formudata(&attr, &value) != 0 || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static void set_file(struct unit *unit, const char *path, struct dwarf_call *call)
{
	if (!path || strcmp(path, "???") == 0) /* libdw's word for a bad index */
		return;
	call->file = path;
	if (path[0] != '/')
		call->dir = string_of(&unit->die, DW_AT_comp_dir);
}

/* Where the inlined call was made: that is where its caller is. */
static void locate_caller(struct unit *unit, Dwarf_Die *inlined, struct dwarf_call *caller)
{
	uint32_t file = number_of(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t count;

	caller->line = number_of(inlined, DW_AT_call_line);
	if (!caller->line)
		return;
	caller->column = number_of(inlined, DW_AT_call_column);
	if (dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && file < count)
		set_file(unit, dwarf_filesrc(files, file, NULL, NULL), caller);
}

/* Where the innermost call is, from the line table. Line 0 marks code that no line made. */
static void locate_innermost(struct unit *unit, uint64_t vaddr, struct dwarf_call *call)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, vaddr);
	int number, column;

	if (!line || dwarf_lineno(line, &number) != 0 || number <= 0)
		return;
	call->line = (uint32_t)number;
	set_file(unit, dwarf_linesrc(line, NULL, NULL), call);
	if (dwarf_linecol(line, &column) == 0 && column > 0)
		call->column = (uint32_t)column;
}

static void name_call(Dwarf_Die *die, struct dwarf_call *call)
{
	call->linkage = string_of(die, DW_AT_linkage_name);
	if (!call->linkage)
		call->linkage = string_of(die, DW_AT_MIPS_linkage_name);
	call->name = string_of(die, DW_AT_name);
}

/* Inlined calls from the outermost to the innermost. */
struct chain {
	Dwarf_Die calls[MAX_NESTING];
	unsigned len;
};

struct scope_search {
	uint64_t vaddr;
	uint32_t budget; /* of DIEs to look at */
	struct chain current;
	struct chain best;
};

static bool is_scope(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

/* Scopes that stand side by side may both contain the address: the one with the longer chain of calls is right. */
static void search_scopes(struct scope_search *s, Dwarf_Die *scope, unsigned depth)
{
	Dwarf_Die die;

	if (s->current.len > s->best.len)
		s->best = s->current;
	if (depth >= MAX_NESTING || dwarf_child(scope, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;

		if (!s->budget)
			return;
		s->budget--;
		if (!is_scope(tag) || dwarf_haspc(&die, s->vaddr) != 1)
			continue;
		if (inlined)
			s->current.calls[s->current.len++] = die;
		search_scopes(s, &die, depth + 1);
		s->current.len -= inlined;
	} while (next_sibling(&die));
}

static void reverse(struct dwarf_calls *calls)
{
	for (size_t i = 0, j = calls->len; i + 1 < j; i++) {
		struct dwarf_call call = calls->data[i];

		calls->data[i] = calls->data[--j];
		calls->data[j] = call;
	}
}

/* The function and the calls inlined into it at the address, outermost first. False when memory is exhausted. */
static bool collect_calls(struct unit *unit, uint64_t vaddr, struct dwarf_calls *out)
{
	Dwarf_Die *function = find_function(unit, vaddr);
	struct scope_search search = {.vaddr = vaddr, .budget = MAX_FUNCTION_DIES};
	struct dwarf_call call = {0};

	if (!function)
		return vec_push(out, call);
	name_call(function, &call);
	if (dwarf_entrypc(function, &call.start) != 0)
		call.start = 0;
	if (!vec_push(out, call))
		return false;
	search_scopes(&search, function, 0);
	for (unsigned i = 0; i < search.best.len; i++) {
		locate_caller(unit, &search.best.calls[i], &out->data[out->len - 1]);
		call = (struct dwarf_call){0};
		name_call(&search.best.calls[i], &call);
		if (!vec_push(out, call))
			return false;
	}
	return true;
}

bool dwarf_source_find(struct dwarf_source *source, uint64_t vaddr, struct dwarf_calls *out)
{
	const struct range *range = ranges_find(&source->ranges, vaddr);
	struct unit *unit = range ? &source->units.data[range->id] : NULL;

	out->len = 0;
	if (!unit || !collect_calls(unit, vaddr, out))
		return false;
	locate_innermost(unit, vaddr, &out->data[out->len - 1]);
	reverse(out);
	return out->len > 1 || out->data[0].name || out->data[0].linkage || out->data[0].line;
}
