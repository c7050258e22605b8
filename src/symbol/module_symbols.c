/* SPDX-License-Identifier: MIT */
#include "symbol/module_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/debugfile.h"

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

/* libdw would look for a missing shared file itself, at whatever path the file names: it is not let loose then. */
static int open_dwarf(struct module_symbols *symbols, const struct module *module, struct image *image, struct err *err)
{
	int ret;

	if (image_section(image, ".gnu_debugaltlink").data) {
		ret = debugfile_open_alt(image, module->info.path, module->root_fd, err, &symbols->alt);
		if (ret < 0)
			return ret;
	}
	return dwarf_source_create(image, symbols->alt, err, &symbols->dwarf);
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
