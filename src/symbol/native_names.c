/* SPDX-License-Identifier: MIT */
#include "symbol/native_names.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "symbol/demangle.h"
#include "symbol/module_symbols.h"

/* The frames of one pc, without what depends on the stack they are in. */
struct resolved {
	size_t len;
	struct frame frames[];
};

struct native_names {
	struct modules *modules;
	struct arena *arena;
	bool demangle;
	struct u64map resolved[2]; /* pc to struct resolved, by whether pc - 1 was looked up */
	struct dwarf_calls calls;  /* of the pc being resolved */
};

struct native_names *native_names_create(struct modules *modules, struct arena *arena, bool demangle)
{
	struct native_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->modules = modules;
	names->arena = arena;
	names->demangle = demangle;
	return names;
}

void native_names_destroy(struct native_names *names)
{
	if (!names)
		return;
	u64map_deinit(&names->resolved[0]);
	u64map_deinit(&names->resolved[1]);
	vec_deinit(&names->calls);
	free(names);
}

static const char *readable(struct native_names *names, const char *name)
{
	_cleanup_free_ char *text = names->demangle ? demangle(name) : NULL;

	return arena_intern(names->arena, text ? text : name);
}

/* The linkage name knows scope and parameters when it is mangled; otherwise it is an alias of the source's name. */
static const char *call_name(struct native_names *names, const struct dwarf_call *call)
{
	if (names->demangle && call->linkage) {
		_cleanup_free_ char *text = demangle(call->linkage);

		if (text)
			return arena_intern(names->arena, text);
	}
	if (!names->demangle && call->linkage)
		return arena_intern(names->arena, call->linkage);
	return arena_intern(names->arena, call->name ? call->name : call->linkage);
}

/* The symbol table's name of the function, which tells clones (foo.cold) and aliases as the linker sees them. */
static bool name_by_symtab(struct native_names *names, const struct module_symbols *symbols, uint64_t at,
			   struct frame *frame)
{
	struct symbol symbol;

	if (!symtab_find(symbols->symtab, at, &symbol))
		return false;
	frame->symbol = readable(names, arena_intern_n(names->arena, symbol.name, symbol.name_len));
	if (symbol.plt)
		frame->symbol = arena_printf(names->arena, "%s@plt", frame->symbol);
	frame->has_offset = true;
	frame->offset = frame->module_offset - symbol.start;
	return true;
}

static void place(struct native_names *names, const struct dwarf_call *call, struct frame *frame)
{
	frame->file = call->dir ? arena_printf(names->arena, "%s/%s", call->dir, call->file)
				: arena_intern(names->arena, call->file);
	frame->line = frame->file ? call->line : 0;
	frame->column = frame->file ? call->column : 0;
}

/* Fills frames[0…calls.len - 1] from copies of `common`: the inlined calls, then the function itself. */
static void fill_calls(struct native_names *names, const struct frame *common, struct frame *frames)
{
	size_t last = names->calls.len - 1;

	for (size_t i = 0; i <= last; i++) {
		frames[i] = *common;
		place(names, &names->calls.data[i], &frames[i]);
		if (i == last)
			break;
		frames[i].inlined = true;
		frames[i].has_offset = false;
		frames[i].offset = 0;
		frames[i].symbol = call_name(names, &names->calls.data[i]);
	}
}

/* The function's name from DWARF, for code that has lost its symbol table. */
static void name_by_dwarf(struct native_names *names, const struct dwarf_call *call, struct frame *frame)
{
	frame->symbol = call_name(names, call);
	if (frame->symbol && call->start && call->start <= frame->module_offset) {
		frame->has_offset = true;
		frame->offset = frame->module_offset - call->start;
	}
}

static struct resolved *resolve(struct native_names *names, uint64_t pc, bool return_address)
{
	struct frame common = {.address = pc, .kind = FRAME_KIND_NATIVE};
	uint64_t at = 0;
	struct module *module = modules_find(names->modules, pc - return_address, &at);
	struct module_symbols *symbols = module ? module_symbols(module) : NULL;
	struct resolved *resolved;
	bool named = false;

	names->calls.len = 0;
	if (module) {
		common.module = &module->info;
		common.module_offset = at + return_address;
	}
	if (symbols) {
		named = name_by_symtab(names, symbols, at, &common);
		if (!symbols->dwarf || !dwarf_source_find(symbols->dwarf, at, &names->calls))
			names->calls.len = 0;
	}
	resolved = arena_alloc(names->arena,
			       sizeof(*resolved) + (names->calls.len ? names->calls.len : 1) * sizeof(common));
	if (!resolved)
		return NULL;
	resolved->len = 1;
	resolved->frames[0] = common;
	if (names->calls.len) {
		resolved->len = names->calls.len;
		if (!named)
			name_by_dwarf(names, &names->calls.data[resolved->len - 1], &common);
		fill_calls(names, &common, resolved->frames);
	}
	return resolved;
}

bool native_names_add(struct native_names *names, const struct raw_frame *raw, uint32_t index, struct stack *out)
{
	/* A signal trampoline was not called: the kernel pushed its first instruction as the return address. */
	bool signal = raw->flags & FRAME_SIGNAL;
	bool return_address = (raw->flags & FRAME_RETURN_ADDRESS) && !signal && raw->pc > 0;
	struct resolved *resolved;
	uint64_t *slot;
	bool created;

	slot = u64map_put(&names->resolved[return_address], raw->pc, &created);
	if (!slot)
		return false;
	if (!*slot)
		*slot = (uintptr_t)resolve(names, raw->pc, return_address);
	resolved = (struct resolved *)(uintptr_t)*slot;
	if (!resolved)
		return false;
	for (size_t i = 0; i < resolved->len; i++) {
		struct frame frame = resolved->frames[i];

		frame.raw = index;
		frame.flags = raw->flags;
		if (signal)
			frame.kind = FRAME_KIND_SIGNAL;
		if (!vec_push(out, frame))
			return false;
	}
	return true;
}
