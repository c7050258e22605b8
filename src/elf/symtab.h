/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_SYMTAB_H
#define STAKEOUT_ELF_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/intervals.h"
#include "elf/image.h"
#include "model/stack.h"

/*
 * The names of code in an ELF file, from .symtab, .dynsym and .gnu_debugdata of the file and of its debug file.
 *
 * A symbol covers [value, value + size). One without a size reaches to the next symbol in its section, and counts only
 * where no sized one does. Of several names of one address the best is kept: functions before labels, exported
 * (global or weak) before local, then the one with fewer leading underscores, global before weak, the shorter, the
 * first in the alphabet. So libc's read is "read", and neither "__read" nor "__GI___libc_read".
 */
struct symtab;

struct symbol {
	uint64_t start;
	uint64_t end;
	const char *name; /* name_len bytes, not NUL-terminated: a version (@VER) is left out */
	size_t name_len;
	enum symbol_source source; /* SYMBOL_PLT: the stub that jumps to the function of this name */
	bool own;                  /* it is in the file itself, not only in its debug file */
};

/* `debug` may be NULL. Both must outlive the table. Tables that are missing or damaged leave fewer names. */
int symtab_create(struct image *image, struct image *debug, struct err *err, struct symtab **out);
void symtab_destroy(struct symtab *tab);

/* The symbol that covers an address. */
bool symtab_find(const struct symtab *tab, uint64_t vaddr, struct symbol *out);

/* All symbols, in no particular order; and which of them is visible where, by index. */
size_t symtab_len(const struct symtab *tab);
struct symbol symtab_at(const struct symtab *tab, size_t index);
const struct pieces *symtab_pieces(const struct symtab *tab);

/* True when names of functions that are not exported are known: a symbol table survived, here or in a debug file. */
bool symtab_has_locals(const struct symtab *tab);

#endif
