/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_SYMTAB_H
#define STAKEOUT_SYMBOL_SOURCE_SYMTAB_H

#include "elf/symtab.h"
#include "symbol/code_cache.h"
#include "symbol/source.h"

/* The names that the linker knows: .symtab, .dynsym, .gnu_debugdata and the stubs of the PLT; no lines. */

/* The data is a struct symtab, which is then owned. */
extern const struct source_ops symtab_source_ops;

/* The data is a struct code_cache that has the symbols, which is borrowed. */
extern const struct source_ops cached_symtab_source_ops;

#endif
