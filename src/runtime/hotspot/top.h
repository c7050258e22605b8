/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_TOP_H
#define STAKEOUT_RUNTIME_HOTSPOT_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "bpf/hotspot_top.h"
#include "runtime/hotspot/code_cache.h"

/* How much of its frame a compiled method has where a thread was interrupted in it: see bpf/hotspot_top.h. */

/* The code that has to be known to tell. False when that would be too much. */
bool top_window(const struct blob *blob, uint64_t pc, uint64_t *start, uint64_t *len);

/* Where a thread was interrupted; link: the link register, 0 where there is none, or it is not known. */
struct top_at {
	uint64_t pc;
	uint64_t link;
};

/* `code` is that window. *below: of a whole frame, how much was saved below it for a call. */
enum top_state top_find(const struct arch *arch, const struct blob *blob, const struct top_at *at, const uint8_t *code, uint64_t start,
			uint64_t len, uint64_t *below);

#endif
