/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_CALLS_H
#define STAKEOUT_SYMBOL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/stack.h"

/*
 * One call at an address: a function, or one that the compiler inlined into it. Strings belong to the source that gave
 * them; unknown values are NULL or 0.
 */
struct call {
	const char *linkage; /* as the linker sees it, often mangled */
	size_t linkage_len;  /* `linkage` is not always NUL-terminated */
	const char *name;    /* as written in the source, without its scope */
	enum symbol_source source;
	bool own;       /* it is in the symbol table of the file itself */
	bool plt;       /* it is the stub that jumps to the function of this name */
	bool has_start; /* `start`, the address of the function, is known; never for an inlined call */
	uint64_t start;
	const char *file; /* whole path, as far as the source knows it */
	uint32_t line;
	uint32_t column;
};

/* The calls at one address, innermost first: all but the last are inlined. */
struct calls {
	VEC_FIELDS(struct call);
};

#endif
