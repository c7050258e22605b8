/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_H
#define STAKEOUT_SYMBOL_SOURCE_H

#include "base/err.h"
#include "symbol/calls.h"

/*
 * A source of names: one file each, behind these functions. Sources of a module look addresses up as the file has
 * them; sources of a process (code that a JIT compiler made) as the target has them.
 *
 * To add one: its file with its ops, a line in the table of module_symbols.c or jit_names.c, a value in
 * enum symbol_source, a unit test, a fuzz target when it parses foreign bytes.
 */
struct source_ops {
	/* Replaces `out` by what is known of the address. False when nothing is, or when memory is exhausted. */
	bool (*find)(void *source, uint64_t address, struct calls *out);
	void (*destroy)(void *source); /* NULL is legal */
};

struct source {
	const struct source_ops *ops;
	void *data; /* NULL: it has nothing for this module or process */
};

static inline bool source_find(const struct source *source, uint64_t address, struct calls *out)
{
	return source->data && source->ops->find(source->data, address, out);
}

static inline void source_deinit(struct source *source)
{
	if (source->data)
		source->ops->destroy(source->data);
	source->data = NULL;
}

#endif
