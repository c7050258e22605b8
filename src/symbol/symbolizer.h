/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SYMBOLIZER_H
#define STAKEOUT_SYMBOL_SYMBOLIZER_H

#include <stdbool.h>

#include "target/modules.h"
#include "model/stack.h"
#include "symbol/native_names.h"

/* Names stacks: function, offset, module, file:line and inlined calls, as far as known. */
struct symbolizer;

struct symbolizer_options {
	struct native_names_options native;
	bool kernel_addresses; /* from the running kernel: not for a snapshot from elsewhere */

	/* Called once for each different user stack, to put what runtimes know in its place: runtimes_merge(). May be NULL. */
	bool (*merge)(void *ctx, const struct raw_stack *raw, struct stack *stack);
	void *merge_ctx;
};

/* Modules and options must outlive the symbolizer. NULL when memory is exhausted. */
struct symbolizer *symbolizer_create(struct modules *modules, const struct symbolizer_options *options);
void symbolizer_destroy(struct symbolizer *sym);

/* Reads beforehand, on all cores, what naming these will need. False when memory is exhausted. */
bool symbolizer_prepare(struct symbolizer *sym, const struct raw_stack *const *stacks, size_t n);

/*
 * The named form of a walked stack. Equal raw stacks (same pcs, flags and frames of runtimes) give the same pointer; each
 * distinct pc is looked up once. Owned by the symbolizer. NULL when memory is exhausted.
 */
const struct stack *symbolizer_name(struct symbolizer *sym, const struct raw_stack *raw);

/*
 * Kernel stacks: from the text that the kernel gave with them, else by address through /proc/kallsyms (read when it is
 * first needed). Same sharing and ownership.
 */
const struct stack *symbolizer_name_kernel(struct symbolizer *sym, const struct snap_thread *thread);

/* Why kernel addresses have no names, or NULL. */
const char *symbolizer_kernel_error(const struct symbolizer *sym);

#endif
