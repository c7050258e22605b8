/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_LOOKUPS_H
#define STAKEOUT_SYMBOL_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "target/modules.h"
#include "symbol/module_symbols.h"

/* Addresses that are going to be looked up, by module, so that what is needed can be read beforehand, on all cores. */
struct module_lookups {
	struct module *module;
	struct module_symbols *symbols; /* NULL: it has none */
	VEC(uint64_t) vaddrs;
	size_t wanted; /* units to be read */
};

struct lookups {
	VEC_FIELDS(struct module_lookups);
	struct u64map by_module;
};

void lookups_deinit(struct lookups *lookups);

/* False when memory is exhausted. */
bool lookups_add(struct lookups *lookups, struct module *module, uint64_t vaddr);

/* Opens the modules, several at a time, then reads the units of all of them. */
void lookups_prepare(struct lookups *lookups, const struct symbol_options *options);

#endif
