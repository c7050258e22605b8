/* SPDX-License-Identifier: MIT */
#include "symbol/native_names.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "symbol/jit_names.h"
#include "symbol/lookups.h"
#include "symbol/readable.h"

/* The frames of one pc, without what depends on the stack they are in. */
struct named_pc {
	size_t len;
	struct frame frames[];
};

struct native_names {
	struct modules *modules;
	struct arena *arena;
	const struct native_names_options *options;
	struct u64map named_pcs[2]; /* pc to struct named_pc, by whether pc - 1 was looked up */
	struct calls calls;         /* of the pc being named */
	struct readable *readable;
	struct jit_names *jit; /* for code that is in no module */
};

struct native_names *native_names_create(struct modules *modules, struct arena *arena,
					 const struct native_names_options *options)
{
	struct native_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->modules = modules;
	names->arena = arena;
	names->options = options;
	names->jit = modules ? jit_names_create(modules_target(modules), modules_notes(modules)) : NULL;
	names->readable = readable_create(arena, false);
	if ((modules && !names->jit) || !names->readable) {
		native_names_destroy(names);
		return NULL;
	}
	return names;
}

void native_names_destroy(struct native_names *names)
{
	if (!names)
		return;
	u64map_deinit(&names->named_pcs[0]);
	u64map_deinit(&names->named_pcs[1]);
	vec_deinit(&names->calls);
	jit_names_destroy(names->jit);
	readable_destroy(names->readable);
	free(names);
}

/* A mangled linkage name knows scope and parameters; one that is not mangled is an alias of the source's name. */
static const char *call_name(struct native_names *names, const struct call *call)
{
	const char *linkage = arena_intern_n(names->arena, call->linkage, call->linkage_len);
	const char *name = names->options->demangle && linkage ? readable_name(names->readable, linkage) : linkage;

	if (!name || (name == linkage && names->options->demangle && call->name))
		name = arena_intern(names->arena, call->name);
	return name && call->plt ? arena_printf(names->arena, "%s@plt", name) : name;
}

/* `at` is the address in the same terms as the call's start. */
static void fill(struct native_names *names, const struct call *call, uint64_t at, struct frame *frame)
{
	frame->symbol = call_name(names, call);
	frame->symbol_source = frame->symbol ? call->source : SYMBOL_UNKNOWN;
	if (frame->symbol && call->has_start && call->start <= at) {
		frame->has_offset = true;
		frame->offset = at - call->start;
	}
	frame->file = arena_intern(names->arena, call->file);
	frame->line = frame->file ? call->line : 0;
	frame->column = frame->file ? call->column : 0;
}

static struct module *find_module(const struct native_names *names, uint64_t address, uint64_t *vaddr)
{
	return names->options->find ? names->options->find(names->options->find_ctx, address, vaddr)
				    : modules_find(names->modules, address, vaddr);
}

/* Looks up code that is in no module. *at: the address in the terms of the calls. */
static bool find_made(struct native_names *names, uint64_t address, uint64_t *at)
{
	*at = address;
	if (names->options->find)
		return names->options->find_made &&
		       names->options->find_made(names->options->find_ctx, address, at, &names->calls);
	return names->jit && jit_names_find(names->jit, address, &names->calls);
}

static struct named_pc *resolve(struct native_names *names, uint64_t pc, bool return_address)
{
	struct frame common = {.address = pc, .kind = FRAME_KIND_NATIVE};
	uint64_t address = pc - return_address, at = 0;
	struct module *module = find_module(names, address, &at);
	bool bare = names->options->bare;
	struct module_symbols *symbols = module && !bare ? module_symbols(module, &names->options->symbols) : NULL;
	struct named_pc *named;
	size_t len;

	if (module) {
		common.module = &module->info;
		common.module_offset = at + return_address;
	}
	if (bare || ((!symbols || !module_symbols_find(symbols, at, &names->calls)) && !find_made(names, address, &at)))
		names->calls.len = 0;
	len = names->calls.len ? names->calls.len : 1;
	named = arena_alloc(names->arena, sizeof(*named) + len * sizeof(common));
	if (!named)
		return NULL;
	named->len = len;
	named->frames[0] = common;
	for (size_t i = 0; i < names->calls.len; i++) {
		named->frames[i] = common;
		named->frames[i].inlined = i + 1 < len;
		fill(names, &names->calls.data[i], at + return_address, &named->frames[i]);
	}
	return named;
}

/* A signal trampoline was not called: the kernel pushed its first instruction as the return address. */
static bool is_return_address(const struct raw_frame *raw)
{
	return (raw->flags & FRAME_RETURN_ADDRESS) && !(raw->flags & FRAME_SIGNAL) && raw->pc > 0;
}

bool native_names_prepare(struct native_names *names, const struct raw_stack *const *stacks, size_t n)
{
	struct lookups lookups = {0};
	struct u64map seen = {0};
	bool ok = true;

	if (names->options->bare)
		return true;
	for (size_t i = 0; ok && i < n; i++) {
		for (size_t f = 0; ok && f < stacks[i]->len; f++) {
			const struct raw_frame *raw = &stacks[i]->data[f];
			uint64_t address = raw->pc - is_return_address(raw), vaddr;
			struct module *module;
			bool created;

			ok = u64map_put(&seen, address, &created);
			module = ok && created ? find_module(names, address, &vaddr) : NULL;
			ok = ok && (!module || lookups_add(&lookups, module, vaddr));
		}
	}
	if (ok)
		lookups_prepare(&lookups, &names->options->symbols);
	lookups_deinit(&lookups);
	u64map_deinit(&seen);
	return ok;
}

bool native_names_add(struct native_names *names, const struct raw_frame *raw, uint32_t index, struct stack *out)
{
	bool return_address = is_return_address(raw);
	struct named_pc *named;
	uint64_t *slot;
	bool created;

	slot = u64map_put(&names->named_pcs[return_address], raw->pc, &created);
	if (!slot)
		return false;
	if (!*slot)
		*slot = (uintptr_t)resolve(names, raw->pc, return_address);
	named = (struct named_pc *)(uintptr_t)*slot;
	if (!named)
		return false;
	for (size_t i = 0; i < named->len; i++) {
		struct frame frame = named->frames[i];

		frame.raw = index;
		frame.flags = raw->flags;
		if (raw->flags & FRAME_SIGNAL)
			frame.kind = FRAME_KIND_SIGNAL;
		if (!vec_push(out, frame))
			return false;
	}
	return true;
}
