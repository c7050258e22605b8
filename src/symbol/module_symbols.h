/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_MODULE_SYMBOLS_H
#define STAKEOUT_SYMBOL_MODULE_SYMBOLS_H

#include "elf/modules.h"
#include "elf/symtab.h"
#include "symbol/source_dwarf.h"

/* All that names the code of one module; kept in module->symbol. */
struct module_symbols {
	struct image *debug; /* the separate debug file, or NULL */
	struct image *alt;   /* the file that dwz moved shared DWARF to, or NULL */
	struct symtab *symtab;
	struct dwarf_source *dwarf; /* NULL when there is no debug info */
	char problem[640];          /* what module->info.problem points at when symbols or debug info are missing */
};

/* Opens them on the first call. NULL when the module has no image, or when memory is exhausted. */
struct module_symbols *module_symbols(struct module *module);

#endif
