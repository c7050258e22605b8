/* SPDX-License-Identifier: MIT */
#include "symbol/module_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/debugfile.h"
#include "elf/symtab.h"
#include "symbol/code_cache.h"
#include "symbol/debug_help.h"
#include "symbol/debuginfod.h"
#include "symbol/source_dwarf.h"
#include "symbol/source_go.h"
#include "symbol/source_symtab.h"

/* Sources of lines, in the order in which they are asked. */
enum { SOURCE_DWARF, SOURCE_GO, NSOURCES };

struct module_symbols {
	struct module *module;
	const struct symbol_options *options;
	bool searched;                 /* for the files with debug info */
	struct image *debug;           /* the separate debug file, or NULL */
	struct image *alt;             /* the file that dwz moved shared DWARF to, or NULL */
	bool lacks_alt;                /* the dwz file is needed but was not found */
	bool foreign;                  /* a file was used that only the target's root has: not to be cached */
	struct code_cache *cache;      /* what earlier runs learnt, or NULL */
	struct symtab *symtab;         /* NULL: the cache has the symbols */
	struct dwarf_source *dwarf;    /* NULL: no debug info */
	struct source lines[NSOURCES]; /* lines and inlined calls: the first one that knows an address wins */
	struct source names;           /* the function's own name */
	struct calls name;             /* of the address being looked up */
	char problem[640];             /* what module->info.problem points at when symbols or debug info are missing */
};

/* The kernel's own object (vDSO), or one that a JIT compiler made: it has no path, and no debug info to install. */
static bool is_special(const struct module *module)
{
	return module->jit || module->info.path[0] == '[';
}

static const char *file_path(const struct module *module)
{
	return is_special(module) ? NULL : module->info.path;
}

/* From the servers, checked by its build-id. */
static int download(struct module_symbols *symbols, struct err *err)
{
	const struct module *module = symbols->module;
	const char *id = module->info.build_id, *found;
	int fd, ret;

	if (!symbols->options->debuginfod || !id || is_special(module))
		return -ENOENT;
	fd = debuginfod_find(symbols->options->debuginfod, DEBUGINFOD_DEBUGINFO, id, module->info.path, err);
	if (fd < 0)
		return fd;
	ret = image_open_fd(fd, err, &symbols->debug);
	if (ret < 0)
		return ret;
	found = image_build_id(symbols->debug);
	if (found && strcmp(found, id) == 0)
		return 0;
	image_destroy(symbols->debug);
	symbols->debug = NULL;
	return err_set(err, ESTALE, "the debuginfod server gave another file's debug info");
}

/* The image that has the DWARF: the module's own, or its debug file. NULL when there is none. */
static struct image *find_debug_info(struct module_symbols *symbols, struct err *err)
{
	struct module *module = symbols->module;
	const struct debugfile_query query = {
		.image = module->image,
		.path = file_path(module),
		.root_fd = module->root_fd,
	};

	if (image_has_section(module->image, ".debug_info"))
		return module->image;
	if (module->jit)
		return NULL;
	if (!symbols->searched && debugfile_find(&query, err, &symbols->debug) < 0)
		download(symbols, err);
	symbols->searched = true;
	symbols->foreign |= symbols->debug && image_is_foreign(symbols->debug);
	return symbols->debug;
}

static int open_split(void *ctx, const char *dir, const char *name, struct image **out)
{
	struct module_symbols *symbols = ctx;
	const struct module *module = symbols->module;
	int ret = debugfile_open_dwo(dir, name, file_path(module), module->root_fd, out);

	symbols->foreign |= ret == 0 && image_is_foreign(*out); /* one thread at a time is here */
	return ret;
}

/* For the DWARF source, which calls it when needed. */
static int open_dwarf(void *ctx, struct err *err, struct dwarf **out)
{
	struct module_symbols *symbols = ctx;
	const struct module *module = symbols->module;
	struct dwarf_options options = {
		.image = find_debug_info(symbols, err),
		.open_split = open_split,
		.open_split_ctx = symbols,
	};

	if (!options.image)
		return -ENOENT;
	if (image_has_section(options.image, ".gnu_debugaltlink"))
		symbols->lacks_alt =
			debugfile_open_alt(options.image, module->info.path, module->root_fd, err, &symbols->alt) < 0;
	options.alt = symbols->alt;
	if (file_path(module) && debugfile_open_dwp(module->info.path, module->root_fd, &options.package) < 0)
		options.package = NULL;
	symbols->foreign |= (options.alt && image_is_foreign(options.alt)) ||
			    (options.package && image_is_foreign(options.package));
	return dwarf_create(&options, err, out);
}

/*
 * The key is the build-id plus the identity of its file: build-ids are only claims, and a process must not be able to
 * make us name other processes' code wrongly. False when the module is not to be cached.
 */
static bool cache_key(const struct module_symbols *symbols, char key[static STORE_KEY_MAX + 1])
{
	const struct module *module = symbols->module;
	uint64_t identity = image_identity(module->image);
	int len;

	if (!symbols->options->cache || !module->info.build_id || !identity || module->jit)
		return false;
	len = snprintf(key, STORE_KEY_MAX + 1, "%s%016llx", module->info.build_id, (unsigned long long)identity);
	return len > 0 && len <= STORE_KEY_MAX;
}

/* A file was changed, or cut short, while it was read: by an upgrade, or by an attacker. */
static bool has_changed(const struct module_symbols *symbols)
{
	return image_has_changed(symbols->module->image) || (symbols->debug && image_has_changed(symbols->debug)) ||
	       (symbols->alt && image_has_changed(symbols->alt));
}

/* Writes what this run has read to the cache. If that fails no harm is done: the next run reads it again. */
static void save(void *ptr)
{
	struct module_symbols *symbols = ptr;
	struct code_cache_contents contents = {.old = symbols->cache, .symtab = symbols->symtab};
	char key[STORE_KEY_MAX + 1];

	if (!symbols->dwarf || !cache_key(symbols, key))
		return;
	if (dwarf_source_error(symbols->dwarf)->code == ESTALE)
		store_remove(symbols->options->cache, key);
	else if (!symbols->lacks_alt && !symbols->foreign && !has_changed(symbols) &&
		 !dwarf_source_split_has_changed(symbols->dwarf) && dwarf_source_news(symbols->dwarf, &contents))
		code_cache_write(symbols->options->cache, key, &contents, NULL);
}

static void destroy(void *ptr)
{
	struct module_symbols *symbols = ptr;

	if (!symbols)
		return;
	save(symbols);
	for (size_t i = 0; i < NSOURCES; i++)
		source_deinit(&symbols->lines[i]);
	source_deinit(&symbols->names);
	vec_deinit(&symbols->name);
	code_cache_destroy(symbols->cache);
	image_destroy(symbols->alt);
	image_destroy(symbols->debug);
	free(symbols);
}

/* Says what is missing, why, and what would help. */
static void explain(struct module_symbols *symbols, const char *what, const struct err *why)
{
	struct module *module = symbols->module;

	snprintf(symbols->problem, sizeof(symbols->problem), "%s: %s", what, why->msg);
	module->info.problem = symbols->problem;
	if (why->code == ENOENT && !module->info.help)
		module->info.help = module->info.build_id ? debug_help(module->root_fd, module->info.path)
							  : "it has no build-id: build it with -g, or with --build-id";
}

static void explain_missing(struct module_symbols *symbols, const struct err *why)
{
	if (is_special(symbols->module) || symbols->lines[SOURCE_GO].data || (symbols->dwarf && !symbols->lacks_alt))
		return;
	if (symbols->lacks_alt)
		explain(symbols, "debug info is incomplete", why);
	else if (symtab_len(symbols->symtab) == 0)
		explain(symbols, "no symbols and no debug info", why);
	else if (!symtab_has_locals(symbols->symtab))
		explain(symbols, "no debug info, and only exported names", why);
	else
		explain(symbols, "no debug info", why);
}

static const char changed[] = "its file, or its debug file, was changed while it was read: names and lines may be wrong";

/* Says what is known only once units have been read. */
static void explain_late(struct module_symbols *symbols)
{
	const char *missing;

	if (has_changed(symbols)) {
		symbols->module->info.problem = changed;
		symbols->module->info.help = NULL;
	}
	if (!symbols->dwarf || symbols->module->info.problem)
		return;
	missing = dwarf_source_missing(symbols->dwarf);
	if (missing) {
		snprintf(symbols->problem, sizeof(symbols->problem),
			 "no functions and inlined calls from DWARF: %.400s is missing", missing);
		symbols->module->info.problem = symbols->problem;
		symbols->module->info.help =
			"keep the .dwo files where they were compiled, or make a .dwp file of them";
	} else if (dwarf_source_error(symbols->dwarf)->code) {
		explain(symbols, "no debug info of code that is not in the cache", dwarf_source_error(symbols->dwarf));
	}
}

static bool open_cached(struct module_symbols *symbols)
{
	char key[STORE_KEY_MAX + 1];

	return cache_key(symbols, key) && code_cache_open(symbols->options->cache, key, &symbols->cache) == 0;
}

static bool open_sources(struct module_symbols *symbols)
{
	struct dwarf_source_options options = {.open = open_dwarf, .ctx = symbols};
	struct image *image = symbols->module->image;
	struct go_source *go = NULL;
	struct err err = {0};

	if (open_cached(symbols))
		options.cache = symbols->cache;
	if (dwarf_source_create(&options, &err, &symbols->dwarf) == 0)
		symbols->lines[SOURCE_DWARF] = (struct source){&dwarf_source_ops, symbols->dwarf};
	if (symbols->cache) {
		symbols->names = (struct source){&cached_symtab_source_ops, symbols->cache};
		return symbols->dwarf;
	}
	if (symtab_create(image, symbols->debug, NULL, &symbols->symtab) < 0)
		return false;
	symbols->names = (struct source){&symtab_source_ops, symbols->symtab};
	if (!symbols->dwarf && go_source_create(image, NULL, &go) == 0)
		symbols->lines[SOURCE_GO] = (struct source){&go_source_ops, go};
	explain_missing(symbols, &err);
	return true;
}

struct module_symbols *module_symbols(struct module *module, const struct symbol_options *options)
{
	struct module_symbols *symbols;

	if (module->symbol || !module->image)
		return module->symbol;
	symbols = calloc(1, sizeof(*symbols));
	if (!symbols)
		return NULL;
	symbols->module = module;
	symbols->options = options;
	if (!open_sources(symbols)) {
		destroy(symbols);
		return NULL;
	}
	module->symbol = symbols;
	module->symbol_free = destroy;
	module->symbol_keep = save;
	return symbols;
}

size_t module_symbols_want(struct module_symbols *symbols, const uint64_t *vaddrs, size_t n)
{
	return symbols->dwarf ? dwarf_source_want(symbols->dwarf, vaddrs, n) : 0;
}

void module_symbols_read(struct module_symbols *symbols, size_t index)
{
	dwarf_source_read(symbols->dwarf, index);
}

static bool is_mangled(const struct call *call)
{
	return call->linkage && call->linkage_len > 2 && call->linkage[0] == '_' &&
	       (call->linkage[1] == 'Z' || call->linkage[1] == 'R');
}

/*
 * The compiler or the linker has merged functions that do the same: the table has all their names at one address, and DWARF
 * that of the function whose code it is. A clone ("name.constprop.0") is that function, and says more.
 */
static bool is_merged(const struct call *function, const struct call *name)
{
	if (!is_mangled(function) || !is_mangled(name) || !function->has_start || function->start != name->start)
		return false;
	return name->linkage_len < function->linkage_len ||
	       memcmp(name->linkage, function->linkage, function->linkage_len) != 0;
}

/* Gives the function, which is the last call, its name from the symbol table, if that is the better one. */
static bool put_name(struct calls *out, const struct call *name)
{
	struct call *last;

	if (!out->len && !vec_push(out, (struct call){0}))
		return false;
	last = &out->data[out->len - 1];
	if ((!name->own && (last->linkage || last->name)) || is_merged(last, name))
		return true;
	last->linkage = name->linkage;
	last->linkage_len = name->linkage_len;
	last->name = NULL;
	last->source = name->source;
	last->plt = name->plt;
	last->start = name->start;
	last->has_start = name->has_start;
	return true;
}

/* Symbols of an object announced by a JIT compiler count as from that source, whichever table they are in. */
static void mark_jit(struct calls *calls)
{
	for (size_t i = 0; i < calls->len; i++)
		if (calls->data[i].source != SYMBOL_UNKNOWN)
			calls->data[i].source = SYMBOL_GDB_JIT;
}

bool module_symbols_find(struct module_symbols *symbols, uint64_t vaddr, struct calls *out)
{
	bool found = false;

	for (size_t i = 0; i < NSOURCES && !found; i++)
		found = source_find(&symbols->lines[i], vaddr, out);
	if (!found)
		out->len = 0;
	explain_late(symbols);
	if (source_find(&symbols->names, vaddr, &symbols->name))
		found = put_name(out, &symbols->name.data[0]);
	if (symbols->module->jit)
		mark_jit(out);
	return found;
}
