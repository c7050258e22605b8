/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_CODE_CACHE_H
#define STAKEOUT_SYMBOL_CODE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intervals.h"
#include "dwarf/unit_map.h"
#include "elf/symtab.h"
#include "symbol/store.h"

/*
 * What was learnt of one module's code in earlier runs: its symbols, which unit has which code, and the maps of the
 * units that were asked for. It is used in place, where the store has mapped it. Each part has a checksum, which is
 * verified when the part is first used, and every index in it is checked: a damaged part is treated as missing.
 */
struct code_cache;

/* -ENOENT when the store has nothing for the build-id, or only something damaged. */
int code_cache_open(const struct store *store, const char *build_id, struct code_cache **out);
void code_cache_destroy(struct code_cache *cache);

/* The symbol that covers an address; its name lives as long as the cache. */
bool code_cache_symbol(const struct code_cache *cache, uint64_t vaddr, struct symbol *out);

/* As dwarf_nunits() and dwarf_unit_at() of the module's DWARF. */
uint32_t code_cache_nunits(const struct code_cache *cache);
uint32_t code_cache_unit_at(const struct code_cache *cache, uint64_t vaddr);

/* The map of a unit, which must not outlive the cache. NULL when it is not there. */
struct unit_map *code_cache_map(const struct code_cache *cache, uint32_t unit);

/* The bytes of a part as they are stored, for writing them again; NULL when it is not there or damaged. */
enum code_cache_part {
	CODE_CACHE_SYMBOLS,
	CODE_CACHE_PIECES,
	CODE_CACHE_UNIT, /* number `unit` */
};

const void *code_cache_raw(const struct code_cache *cache, enum code_cache_part part, uint32_t unit, size_t *len);

/* All that is to be kept of a module. */
struct code_cache_contents {
	const struct code_cache *old; /* the present contents, whose units are kept; or NULL */
	const struct symtab *symtab;  /* NULL: those of `old` */
	const struct pieces *units;   /* which unit has which code; NULL: as in `old` */
	uint32_t nunits;
	struct unit_map *const *maps; /* by number of the unit; NULL, or not `whole`: not kept */
};

/* Stores them for the build-id. If that fails, just go on. */
int code_cache_write(const struct store *store, const char *build_id, const struct code_cache_contents *contents,
		     struct err *err);

#endif
