/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_FRAME_H
#define STAKEOUT_RUNTIME_HOTSPOT_FRAME_H

#include "runtime/hotspot/code_cache.h"
#include "unwind/walk.h"

/*
 * What a frame in HotSpot's code stands for, as in struct runtime_frame: of an interpreted one `code` is its Method and
 * `place` the address of the bytecode; of others `code` is the blob, and `place` the address in it.
 */
struct java_place {
	uint64_t code;
	uint64_t place;
};

/*
 * One step from the current frame, whose pc is in a code heap. *place is set when it is STEP_FOUND: `code` is 0 when the
 * frame stands for nothing.
 */
enum step_result java_step(struct code_cache *cache, struct walk *w, struct caller *out, struct java_place *place);

#endif
