/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_SYMRECORDS_H
#define STAKEOUT_ELF_SYMRECORDS_H

#include <elf.h>
#include <stdbool.h>

#include "base/cursor.h"
#include "elf/image.h"

enum { SYMRECORDS_MAX_NAME = 32 << 10 }; /* longer ones are cut */

/*
 * The records of one symbol table and the strings that they refer to, of either word size and byte order. A record is
 * read once; a name is a run of bytes in the file, which may change.
 */
struct symrecords {
	struct cursor records;
	struct cursor names;
	bool wide;        /* 64-bit */
	bool is_arm;      /* of 32 bits */
	uint64_t *budget; /* bytes that may still be read of all the file's tables; the table ends when none are left */
};

/*
 * Tables may overlap, and so may names: a file may cost its own size several times, but not the square of it. This is
 * more than any file needs whose names are merely shared.
 */
uint64_t symrecords_budget(const struct image *image);

/* False when it is exhausted. */
bool symrecords_charge(struct symrecords *table, uint64_t bytes);

/* The symbol table in a section. One that is compressed or damaged has no records, or none that has a name. */
struct symrecords symrecords_init(const struct image *image, size_t section, uint64_t *budget);

/* Continues with the record of that number. */
bool symrecords_seek(struct symrecords *table, uint64_t index);

/* False at the end. */
bool symrecords_next(struct symrecords *table, Elf64_Sym *sym);

/*
 * The name of a symbol, of *len bytes; if it was cut, no NUL follows. NULL when it is outside of the strings, or runs
 * to their end without a NUL. It lives as long as the image.
 */
const char *symrecords_name(struct symrecords *table, const Elf64_Sym *sym, size_t *len);

/* Whether the symbol has that very name. */
bool symrecords_is_named(const struct symrecords *table, const Elf64_Sym *sym, const char *name);

#endif
