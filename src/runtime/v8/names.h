/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_NAMES_H
#define STAKEOUT_RUNTIME_V8_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/stack.h"
#include "runtime/v8/frame.h"

/* What is shown for frames of V8. Equal ones are one, so that the stacks of several threads are found to be equal. */
struct v8_names {
	struct arena *arena; /* their strings */
	VEC(struct frame) frames;
	struct u64map known; /* hash of a frame → position in it + 1 */
};

bool v8_names_init(struct v8_names *named); /* false when memory is exhausted */
void v8_names_deinit(struct v8_names *named);

enum v8_naming { V8_NAMED, V8_NOT_NAMED, V8_NO_MEMORY };

/* Positions in `frames`, the innermost first: what was inlined into a function is before it. */
struct v8_named {
	uint32_t data[TRANSLATION_FRAMES];
	size_t len;
};

enum v8_naming v8_name_place(struct v8_names *named, const struct heap *heap, const struct v8_place *place,
			     struct v8_named *out);

#endif
