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
	struct calls calls;	   /* of the pc being resolved */
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

/* A mangled linkage name knows scope and parameters; one that is not mangled is an alias of the source's name. */
static const char *call_name(struct native_names *names, const struct call *call)
{
	const char *linkage = arena_intern_n(names->arena, call->linkage, call->linkage_len);
	_cleanup_free_ char *text = names->demangle && linkage ? demangle(linkage) : NULL;
	const char *name = text ? arena_intern(names->arena, text) : NULL;

	if (!name)
		name = linkage && (!names->demangle || !call->name) ? linkage : arena_intern(names->arena, call->name);
	return name && call->plt ? arena_printf(names->arena, "%s@plt", name) : name;
}

static void fill(struct native_names *names, const struct call *call, struct frame *frame)
{
	frame->symbol = call_name(names, call);
	frame->symbol_source = frame->symbol ? call->source : SYMBOL_UNKNOWN;
	if (frame->symbol && call->has_start && call->start <= frame->module_offset) {
		frame->has_offset = true;
		frame->offset = frame->module_offset - call->start;
	}
	frame->file = arena_intern(names->arena, call->file);
	frame->line = frame->file ? call->line : 0;
	frame->column = frame->file ? call->column : 0;
}

static struct resolved *resolve(struct native_names *names, uint64_t pc, bool return_address)
{
	struct frame common = {.address = pc, .kind = FRAME_KIND_NATIVE};
	uint64_t at = 0;
	struct module *module = modules_find(names->modules, pc - return_address, &at);
	struct module_symbols *symbols = module ? module_symbols(module) : NULL;
	struct resolved *resolved;
	size_t len;

	if (module) {
		common.module = &module->info;
		common.module_offset = at + return_address;
	}
	if (!symbols || !module_symbols_find(symbols, at, &names->calls))
		names->calls.len = 0;
	len = names->calls.len ? names->calls.len : 1;
	resolved = arena_alloc(names->arena, sizeof(*resolved) + len * sizeof(common));
	if (!resolved)
		return NULL;
	resolved->len = len;
	resolved->frames[0] = common;
	for (size_t i = 0; i < names->calls.len; i++) {
		resolved->frames[i] = common;
		resolved->frames[i].inlined = i + 1 < len;
		fill(names, &names->calls.data[i], &resolved->frames[i]);
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
