/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_SYMBOL_H
#define STAKEOUT_RUNTIME_HOTSPOT_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot/layout.h"
#include "runtime/pages.h"

/* The names that classes consist of. Longer ones are cut. */
enum { SYMBOL_MAX = 1024 };

struct symbol_text {
	char bytes[SYMBOL_MAX + 1];
	size_t len;
};

/* False: there is none, or it is not known. */
bool symbol_read(const struct layout *layout, struct pages *pages, uint64_t symbol, struct symbol_text *out);

/* That of a constant pool which has this number. */
bool symbol_read_constant(const struct layout *layout, struct pages *pages, uint64_t pool, uint64_t index,
			  struct symbol_text *out);

#endif
