/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SOURCE_DWARF_H
#define STAKEOUT_SYMBOL_SOURCE_DWARF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "dwarf/dwarf.h"
#include "symbol/calls.h"
#include "symbol/code_cache.h"
#include "symbol/source.h"

/*
 * Lines and inlined calls from DWARF. Only the units that addresses fall into are read, each once; those in the cache
 * are taken from there, and the DWARF itself is opened only when a unit is needed that is not in the cache.
 */
struct dwarf_source;

struct dwarf_source_options {
	const struct code_cache *cache;                              /* or NULL */
	int (*open)(void *ctx, struct err *err, struct dwarf **out); /* gives the DWARF, once; the source owns it */
	void *ctx;
};

/* What the options point at must outlive it. Without a cache the DWARF is opened now. */
int dwarf_source_create(const struct dwarf_source_options *options, struct err *err, struct dwarf_source **out);
void dwarf_source_destroy(struct dwarf_source *source);

/*
 * Prepares finding these addresses, in two steps, so that all cores have work: first the units are counted, then each
 * of them is read, by any thread, before anything else is done with the source.
 */
size_t dwarf_source_want(struct dwarf_source *source, const uint64_t *vaddrs, size_t n);
void dwarf_source_read(struct dwarf_source *source, size_t index);

/*
 * Replaces `out` by the calls at an address. When only the line is known, and not the function, there is one call
 * without a name. False when nothing is known, or when memory is exhausted.
 */
bool dwarf_source_find(struct dwarf_source *source, uint64_t vaddr, struct calls *out);

/* Of a struct dwarf_source. */
extern const struct source_ops dwarf_source_ops;

/*
 * What should be added to the cache: fills `units`, `nunits` and `maps` of the contents, which are valid until the
 * source is used again. False when there is nothing new.
 */
bool dwarf_source_news(const struct dwarf_source *source, struct code_cache_contents *out);

/* Why a unit that is not in the cache could not be read; code 0: none was needed, or all were read. */
const struct err *dwarf_source_error(const struct dwarf_source *source);

/* A .dwo file that was needed and not found, or NULL. */
const char *dwarf_source_missing(const struct dwarf_source *source);

/* A .dwo or .dwp file was changed while it was read. */
bool dwarf_source_split_has_changed(const struct dwarf_source *source);

#endif
