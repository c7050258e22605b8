/* SPDX-License-Identifier: MIT */
#include "symbol/module_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/debugfile.h"
#include "elf/symtab.h"
#include "symbol/source_dwarf.h"

struct module_symbols {
	struct image *debug; /* the separate debug file, or NULL */
	struct image *alt;   /* the file that dwz moved shared DWARF to, or NULL */
	struct symtab *symtab;
	struct dwarf_source *dwarf; /* NULL when there is no debug info */
	char problem[640]; /* what module->info.problem points at when symbols or debug info are missing */
};

static void destroy(void *ptr)
{
	struct module_symbols *symbols = ptr;

	if (!symbols)
		return;
	dwarf_source_destroy(symbols->dwarf);
	symtab_destroy(symbols->symtab);
	image_destroy(symbols->alt);
	image_destroy(symbols->debug);
	free(symbols);
}

/* The kernel's own object: it has a name, not a path, and nobody installs debug info for it. */
static bool is_special(const struct module *module)
{
	return module->info.path[0] == '[';
}

static int no_split(void *ctx, const char *dir, const char *name, struct image **out)
{
	return -ENOENT;
}

static int open_dwarf(struct module_symbols *symbols, const struct module *module, struct image *image, struct err *err)
{
	struct dwarf_options options = {.image = image, .open_split = no_split};

	if (image_section(image, ".gnu_debugaltlink").data)
		debugfile_open_alt(image, module->info.path, module->root_fd, err, &symbols->alt);
	options.alt = symbols->alt;
	return dwarf_source_create(&options, err, &symbols->dwarf);
}

static void find_debug_info(struct module_symbols *symbols, const struct module *module, struct err *err)
{
	const struct debugfile_query query = {
		.image = module->image,
		.path = is_special(module) ? NULL : module->info.path,
		.root_fd = module->root_fd,
	};

	if (image_section(module->image, ".debug_info").data) {
		open_dwarf(symbols, module, module->image, err);
		return;
	}
	if (debugfile_find(&query, err, &symbols->debug) == 0)
		open_dwarf(symbols, module, symbols->debug, err);
}

static void explain_missing(struct module_symbols *symbols, struct module *module, const struct err *why)
{
	const char *id = module->info.build_id;
	const char *what = "no debug info";

	if (symbols->dwarf || is_special(module))
		return;
	if (symtab_len(symbols->symtab) == 0)
		what = "no symbols and no debug info";
	else if (!symtab_has_locals(symbols->symtab))
		what = "no debug info, and only exported names";
	snprintf(symbols->problem, sizeof(symbols->problem), "%s: %s (build-id %s)%s", what, why->msg,
		 id ? id : "missing", why->code == ENOENT ? "; install its debug package" : "");
	module->info.problem = symbols->problem;
}

struct module_symbols *module_symbols(struct module *module)
{
	struct module_symbols *symbols;
	struct err err = {0};

	if (module->symbol || !module->image)
		return module->symbol;
	symbols = calloc(1, sizeof(*symbols));
	if (!symbols)
		return NULL;
	find_debug_info(symbols, module, &err);
	if (symtab_create(module->image, symbols->debug, &err, &symbols->symtab) < 0) {
		destroy(symbols);
		return NULL;
	}
	explain_missing(symbols, module, &err);
	module->symbol = symbols;
	module->symbol_free = destroy;
	return symbols;
}

bool module_symbols_find(struct module_symbols *symbols, uint64_t vaddr, struct calls *out)
{
	struct symbol symbol;
	struct call *last;

	out->len = 0;
	if (!symbols->dwarf || !dwarf_source_find(symbols->dwarf, vaddr, out))
		out->len = 0;
	if (!symtab_find(symbols->symtab, vaddr, &symbol))
		return out->len > 0;
	if (!out->len && !vec_push(out, (struct call){0}))
		return false;
	last = &out->data[out->len - 1];
	last->linkage = symbol.name;
	last->linkage_len = symbol.name_len;
	last->name = NULL;
	last->source = symbol.source;
	last->plt = symbol.source == SYMBOL_PLT;
	last->start = symbol.start;
	last->has_start = true;
	return true;
}

void module_symbols_prepare(struct module_symbols *symbols, const uint64_t *vaddrs, size_t n)
{
	if (symbols->dwarf)
		dwarf_source_prepare(symbols->dwarf, vaddrs, n);
}
