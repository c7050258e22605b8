/* SPDX-License-Identifier: MIT */
#include "symbol/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernel/kallsyms.h"

struct kernel_names {
	struct arena *arena;
	const char *path;
	struct kallsyms *kallsyms;
	bool tried;
	const char *error;
	VEC(struct module_info *) modules;
};

struct kernel_names *kernel_names_create(struct arena *arena, const char *path)
{
	struct kernel_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->arena = arena;
	names->path = path;
	return names;
}

void kernel_names_destroy(struct kernel_names *names)
{
	if (!names)
		return;
	kallsyms_destroy(names->kallsyms);
	vec_deinit(&names->modules);
	free(names);
}

/* The one description of a kernel module; NULL for the kernel proper. */
static const struct module_info *find_module(struct kernel_names *names, const char *name, size_t len)
{
	const char *path = arena_intern_n(names->arena, name, len);
	struct module_info *info;

	if (!path)
		return NULL;
	for (size_t i = 0; i < names->modules.len; i++)
		if (names->modules.data[i]->path == path) /* interned */
			return names->modules.data[i];
	info = arena_alloc(names->arena, sizeof(*info));
	if (!info || !vec_push(&names->modules, info))
		return NULL;
	info->path = path;
	return info;
}

static void name_by_text(struct kernel_names *names, const char *text, struct frame *frame)
{
	struct kernel_text parsed;

	if (!kernel_text_parse(text, &parsed))
		return;
	frame->symbol = arena_intern_n(names->arena, parsed.name, parsed.name_len);
	frame->symbol_source = SYMBOL_KERNEL;
	frame->has_offset = parsed.has_offset;
	frame->offset = parsed.offset;
	frame->module = find_module(names, parsed.module, parsed.module_len);
}

static const struct kallsyms *load(struct kernel_names *names)
{
	struct err err = {0};

	if (!names->tried) {
		names->tried = true;
		if (!names->path)
			names->error = "the snapshot was saved without them, and the addresses are not this kernel's";
		else if (kallsyms_load(names->path, &err, &names->kallsyms) < 0)
			names->error = arena_intern(names->arena, err.msg);
	}
	return names->kallsyms;
}

/* A sleeping thread's kernel stack holds only return addresses, down to that of the switch it sleeps in. */
static void name_by_address(struct kernel_names *names, uint64_t address, struct frame *frame)
{
	const struct kallsyms *kallsyms = load(names);
	struct kernel_symbol symbol;

	if (!kallsyms || address == 0 || !kallsyms_find(kallsyms, address - 1, &symbol))
		return;
	frame->symbol = arena_intern(names->arena, symbol.name);
	frame->symbol_source = SYMBOL_KALLSYMS;
	frame->has_offset = true;
	frame->offset = address - symbol.start;
	if (symbol.module)
		frame->module = find_module(names, symbol.module, strlen(symbol.module));
}

bool kernel_names_add(struct kernel_names *names, const struct snap_thread *thread, uint32_t index, struct stack *out)
{
	struct frame frame = {.kind = FRAME_KIND_KERNEL, .raw = index};

	if (thread->kernel_pcs)
		frame.address = thread->kernel_pcs[index];
	if (thread->kernel_text && thread->kernel_text[index])
		name_by_text(names, thread->kernel_text[index], &frame);
	else
		name_by_address(names, frame.address, &frame);
	return vec_push(out, frame);
}

const char *kernel_names_error(const struct kernel_names *names)
{
	return names->error;
}
