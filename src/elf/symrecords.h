/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_SYMRECORDS_H
#define STAKEOUT_ELF_SYMRECORDS_H

#include <gelf.h>
#include <stdbool.h>

#include "base/cursor.h"

enum { SYMRECORDS_MAX_NAME = 32 << 10 }; /* longer ones are cut */

/*
 * The records of one symbol table and the strings that they refer to, of either word size and byte order. libelf would
 * look for the end of the strings anew for each name.
 */
struct symrecords {
	struct cursor records;
	struct cursor names;
	bool wide; /* 64-bit */
};

/* The symbol table in a section. One that is compressed or damaged has no records, or none that has a name. */
struct symrecords symrecords_init(Elf *elf, Elf_Scn *scn);

/* The next record is the one of that number. */
bool symrecords_seek(struct symrecords *table, uint64_t index);

/* False at the end. */
bool symrecords_next(struct symrecords *table, GElf_Sym *sym);

/*
 * The name of a symbol, of *len bytes: when it was cut, no NUL follows. NULL when it is not in the strings, or ends
 * where they do, without a NUL. It lives as long as the strings.
 */
const char *symrecords_name(const struct symrecords *table, const GElf_Sym *sym, size_t *len);

/* Whether the symbol has that very name. */
bool symrecords_is_named(const struct symrecords *table, const GElf_Sym *sym, const char *name);

#endif
