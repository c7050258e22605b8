/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_TOP_H
#define STAKEOUT_RUNTIME_HOTSPOT_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "runtime/hotspot/code_cache.h"

/* How much of its frame a compiled method has where a thread was interrupted in it: it may be building or leaving it. */
enum top_state {
	TOP_WHOLE,
	TOP_NONE,    /* the caller's sp is ours; the return address is in the link register, or at sp */
	TOP_RECORD,  /* frame pointer and return address are at sp, and nothing else */
	TOP_UNSAVED, /* as large as it will be, but the frame pointer, and a return address in a register, are not in it yet */
	TOP_UNKNOWN,
};

enum { TOP_MAX_WINDOW = 1024 };

/* The code that has to be known to tell. False when that would be too much. */
bool top_window(const struct blob *blob, uint64_t pc, uint64_t *start, uint64_t *len);

/* `code` is that window. */
enum top_state top_find(const struct arch *arch, const struct blob *blob, uint64_t pc, const uint8_t *code, uint64_t start,
			uint64_t len);

#endif
