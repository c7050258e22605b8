/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_POINTERS_H
#define STAKEOUT_TARGET_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

/* What a thread works with, where nothing tells which of its registers has it, or where on its stack it is. */

struct pointed {
	uint32_t alignment, bytes; /* of the object */
	uint32_t scanned;	   /* bytes of the stack, from its innermost on */
	bool anonymous;		   /* it is in memory of no file, and not on the stack itself */
};

/* Where such an object may be, in memory that can be written: the registers and the stack point there. Each once, registers first; at most `max`. */
size_t pointers_of(const struct snapshot *snap, const struct snap_thread *thread, const struct pointed *what, uint64_t *out, size_t max);

#endif
