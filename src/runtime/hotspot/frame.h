/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_FRAME_H
#define STAKEOUT_RUNTIME_HOTSPOT_FRAME_H

#include "runtime/hotspot/code_cache.h"
#include "runtime/hotspot/method.h"
#include "unwind/walk.h"

/*
 * What a frame in HotSpot's code stands for, as in struct runtime_frame: of an interpreted one `code` is its Method and
 * `place` the address of the bytecode; of others `code` is the blob, and `place` the address in it.
 */
struct java_place {
	uint64_t code;
	uint64_t place;
	uint32_t version; /* of waits over time: which compilation was in the blob; else 0 */
};

/* No frame, but the place of those of a virtual thread that are not on the stack. */
enum { JAVA_PLACE_ELSEWHERE = 0 };

/*
 * One step from the current frame, whose pc is in a code heap. *place is what the frame stands for, whatever the result:
 * `code` is 0 when that is not known.
 */
enum step_result java_step(struct code_cache *cache, struct methods *methods, struct walk *w, struct caller *out,
			   struct java_place *place);

/* How much of the code behind a call to native code a step looks at. */
enum { JAVA_BEHIND_CALL = 384 };
uint64_t java_behind_call(const struct blob *blob, uint64_t pc);

/* Where an interpreted frame has its method, from its frame pointer on; and the bytecode that is executed. */
enum { JAVA_METHOD_SLOT = -3 * 8 };
int32_t java_bytecode_slot(const struct layout *layout, const struct arch *arch); /* 0: not known for that architecture */

#endif
