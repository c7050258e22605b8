/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_GO_TABLES_H
#define STAKEOUT_ELF_GO_TABLES_H

#include "base/budget.h"
#include "base/cursor.h"
#include "elf/image.h"

/* The layout, by magic number: the first release that has it. */
enum go_version {
	GO_1_2,
	GO_1_16, /* one table became six, each with an offset in the header */
	GO_1_18, /* addresses became offsets from the start of the code */
	GO_1_20,
};

enum {
	GO_MODULE_WORDS = 50
}; /* words of runtime.moduledata: beyond go:func.*, whose place differs from release to release */

/*
 * The tables that every Go program carries for its own stack traces, stripped or not (.gopclntab), and where they
 * are. Offsets in them start where each of these spans starts; a span may be longer than its table.
 */
struct go_tables {
	struct image *image;   /* borrowed */
	struct budget *budget; /* for finding them */
	enum go_version version;
	bool big_endian;
	unsigned ptr_size;
	unsigned quantum; /* addresses are counted in units of so many bytes */
	uint64_t nfunc;
	struct span whole; /* from the header on */
	struct span names;
	struct span cus; /* file numbers of a unit to offsets in `files` */
	struct span files;
	struct span pcs;
	struct span funcs; /* first the addresses, sorted, then a record for each */
	uint64_t text;     /* the address that addresses are relative to; 0 before 1.18 */
	bool has_module;
	uint64_t module[GO_MODULE_WORDS]; /* runtime.moduledata as the loader leaves it; from 1.18 on */
	uint8_t *relocated;               /* owned copy of `whole`, for old position-independent programs */
};

/*
 * -ENOENT when it is not a Go program, -EBUSY when the budget (may be NULL) does not suffice to search for them, another
 * error when its tables cannot be used.
 */
int go_tables_init(struct go_tables *tables, struct image *image, struct budget *budget, struct err *err);
void go_tables_deinit(struct go_tables *tables);

/* A reader in the program's byte order, at an offset of a span; an empty one beyond its end. */
struct cursor go_tables_at(const struct go_tables *tables, struct span span, uint64_t offset);

/* Bytes of each of the two numbers that the table of functions has for a function. */
unsigned go_tables_functab_field(const struct go_tables *tables);

/* A reader at an address of the file. */
struct cursor go_tables_memory(const struct go_tables *tables, uint64_t vaddr);

#endif
