/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_CODE_CACHE_H
#define STAKEOUT_RUNTIME_HOTSPOT_CODE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "runtime/hotspot/layout.h"
#include "runtime/pages.h"

/*
 * All code that HotSpot makes lies in its code heaps, as blobs: a compiled method, the interpreter, stubs. A segment map
 * beside each heap leads from any address in a blob to its start, and its header tells how large its frames are.
 */
enum blob_kind {
	BLOB_COMPILED, /* a method */
	BLOB_NATIVE,   /* the wrapper of a native method */
	BLOB_INTERPRETER,
	BLOB_STUB,
};

struct blob {
	enum blob_kind kind;
	uint64_t start;
	uint64_t size;
	uint64_t code_begin;
	uint64_t code_end;
	uint32_t frame_size;     /* in words; 0: it has none of its own, or several */
	uint32_t frame_complete; /* offset in its code from which on the frame is there */
	char name[64];
};

struct code_cache {
	const struct layout *layout;
	struct pages *pages;
	VEC(struct blob) blobs;
	struct u64map by_start; /* index in blobs + 1 */
};

void code_cache_init(struct code_cache *cache, const struct layout *layout, struct pages *pages);
void code_cache_deinit(struct code_cache *cache);

/* True when the address is in a code heap. */
bool code_cache_owns(const struct code_cache *cache, uint64_t pc);

/*
 * The blob of an address, until the next call; NULL: there is none, or not all that tells of it is known. Addresses in
 * free parts of the heaps have none.
 */
const struct blob *code_cache_find(struct code_cache *cache, uint64_t pc);

#endif
