/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_MODULE_SYMBOLS_H
#define STAKEOUT_SYMBOL_MODULE_SYMBOLS_H

#include <stdbool.h>

#include "elf/modules.h"
#include "symbol/calls.h"

/* All that names the code of one module, from its sources in order; kept in module->symbol. */
struct module_symbols;

/* Opens them on the first call. NULL when the module has no image, or when memory is exhausted. */
struct module_symbols *module_symbols(struct module *module);

/* Does on all cores what finding these addresses will need. */
void module_symbols_prepare(struct module_symbols *symbols, const uint64_t *vaddrs, size_t n);

/*
 * Replaces `out` by the calls at an address of the file. The function's name is that of the symbol table, which tells
 * clones (foo.cold) and aliases as the linker sees them; lines and inlined calls come from the first source that knows
 * them. False when nothing is known, or when memory is exhausted.
 */
bool module_symbols_find(struct module_symbols *symbols, uint64_t vaddr, struct calls *out);

#endif
