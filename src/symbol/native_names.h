/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_NATIVE_NAMES_H
#define STAKEOUT_SYMBOL_NATIVE_NAMES_H

#include <stdbool.h>

#include "base/arena.h"
#include "target/modules.h"
#include "model/stack.h"
#include "symbol/module_symbols.h"

/* Names of user-space code. Each distinct address is looked up once. */
struct native_names;

struct native_names_options {
	bool demangle;
	bool bare; /* only modules and offsets: no file is read */
	struct symbol_options symbols;

	/* Which module has an address, when there is no process behind the addresses; NULL: ask the modules. */
	struct module *(*find)(void *ctx, uint64_t address, uint64_t *vaddr);
	void *find_ctx;

	/*
	 * In the same way, what is known of an address in no module (code made at run time), in terms of *at. May be
	 * NULL.
	 */
	bool (*find_made)(void *ctx, uint64_t address, uint64_t *at, struct calls *out);
};

/* Modules (NULL: `find` is set), arena and options outlive it; strings go to the arena. NULL when memory is exhausted. */
struct native_names *native_names_create(struct modules *modules, struct arena *arena,
					 const struct native_names_options *options);
void native_names_destroy(struct native_names *names);

/* Reads on all cores what naming these stacks will need. False when memory is exhausted. */
bool native_names_prepare(struct native_names *names, const struct raw_stack *const *stacks, size_t n);

/* Appends the frames of raw frame number `index`, innermost inlined call first. False when memory is exhausted. */
bool native_names_add(struct native_names *names, const struct raw_frame *raw, uint32_t index, struct stack *out);

#endif
