/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_GO_FUNCS_H
#define STAKEOUT_ELF_GO_FUNCS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/go_tables.h"

enum { GO_NAME_MAX = 32 << 10 }; /* bytes; anything longer is not a name */

/* The flags of a function, since 1.17; before that they are 0. */
enum go_func_flag {
	GO_FUNC_TOP = 1 << 0, /* the outermost function of its stack */
	GO_FUNC_WRITES_SP =
		1 << 1, /* it changes stacks, or aligns its frame: its frame sizes do not tell where sp is */
};

/* One function: its record, decoded. */
struct go_func {
	uint64_t start; /* address */
	uint64_t end;
	uint32_t name;
	uint32_t pcsp; /* tables by address: the size of the frame, file numbers, lines */
	uint32_t pcfile;
	uint32_t pcln;
	uint32_t npcdata;
	uint32_t cu;
	uint8_t flags;        /* enum go_func_flag */
	struct cursor pcdata; /* what follows: ids and counts, npcdata offsets, then the funcdata */
	uint64_t *budget;     /* bytes of its tables by address that may still be read */
};

/* The functions by rising address, tables->nfunc of them. False for a hole between functions. */
bool go_func_nth(const struct go_tables *tables, uint64_t index, uint64_t *budget, struct go_func *out);

/* The function that covers an address. */
bool go_func_find(const struct go_tables *tables, uint64_t vaddr, uint64_t *budget, struct go_func *out);

/* A name at an offset, of at most GO_NAME_MAX bytes; NULL when there is none. The file may change: it may too. */
const char *go_name_at(const struct go_tables *tables, uint32_t offset);

/* The same in any span, for names of files. */
const char *go_string_at(const struct go_tables *tables, struct span span, uint32_t offset);

/* A table of values by address: pairs of a difference to the previous value, and the bytes for which it holds. */
struct go_values {
	struct cursor c;
	uint64_t *budget;
	uint64_t start; /* where the value begins, */
	uint64_t end;   /* and where it ends */
	int32_t value;
	bool started;
};

/* `offset` is that of the table; 0 stands for an empty one. */
struct go_values go_values(const struct go_tables *tables, const struct go_func *f, uint32_t offset);
bool go_values_next(const struct go_tables *tables, struct go_values *values);

/* The value at an address. -1 when the table has nothing for it. */
int32_t go_value_at(const struct go_tables *tables, const struct go_func *f, uint32_t offset, uint64_t vaddr);

#endif
