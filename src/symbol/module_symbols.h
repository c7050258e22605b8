/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_MODULE_SYMBOLS_H
#define STAKEOUT_SYMBOL_MODULE_SYMBOLS_H

#include <stdbool.h>

#include "target/modules.h"
#include "symbol/calls.h"
#include "symbol/store.h"

/*
 * Everything that names the code of one module, from its sources in order; kept in module->symbol. What was read of its
 * debug info goes to the cache when the module is closed.
 */
struct module_symbols;

/* Where else names may come from. Both may be NULL. */
struct symbol_options {
	const struct store *cache;
	struct debuginfod *debuginfod;
};

/*
 * Opens them on the first call; the options must outlive the module. NULL when the module has no image, or when memory
 * is exhausted. Several threads may open several modules.
 */
struct module_symbols *module_symbols(struct module *module, const struct symbol_options *options);

/*
 * Prepares finding these addresses, in two steps: see dwarf_source_want(). symbol/lookups.h does it for many modules.
 */
size_t module_symbols_want(struct module_symbols *symbols, const uint64_t *vaddrs, size_t n);
void module_symbols_read(struct module_symbols *symbols, size_t index);

/*
 * Replaces `out` by the calls at an address of the file. Lines and inlined calls come from the first source that knows
 * them. The function's own name is that of the file's symbol table, where it has one (the exported alias, or the clone
 * foo.cold), else what the source of lines calls it, else that of the debug file's symbol table: as llvm-symbolizer
 * chooses. False when nothing is known, or when memory is exhausted.
 */
bool module_symbols_find(struct module_symbols *symbols, uint64_t vaddr, struct calls *out);

#endif
