/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_SAFEPOINT_H
#define STAKEOUT_RUNTIME_V8_SAFEPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/v8/code.h"

/* Optimised code has a table of the addresses that calls return to, behind its instructions. */
struct v8_safepoint {
	uint32_t pc;         /* from the start of the instructions */
	uint32_t trampoline; /* where the call returns to instead, once the code is no longer valid; UINT32_MAX: nowhere */
	uint32_t deopt;      /* number of the entry that tells what was executed here */
};

/* That of a call which returns to `pc`. False: there is none, it has no such entry, or it cannot be read. */
bool v8_safepoint_find(const struct heap *heap, const struct v8_code *code, uint64_t pc, struct v8_safepoint *out);

#endif
