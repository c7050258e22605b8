/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_WAIT_FRAMES_H
#define STAKEOUT_RUNTIME_V8_WAIT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "bpf/runtime_layout.h"
#include "model/maps.h"
#include "model/mem.h"
#include "model/stack.h"
#include "runtime/pages.h"
#include "runtime/v8/layout.h"
#include "runtime/v8/names.h"
#include "runtime/v8/position.h"

/*
 * Frames that BPF tells of waits (bpf/v8_stack.bpf.h). They are named soon after the wait, while the process runs: what a
 * function shares with others of its source may have moved by then, and counts only if it is known again before and after.
 */
struct v8_wait_frame {
	uint64_t code;
	uint64_t place;
	uint64_t more;
	uint64_t pc; /* in code that was made at run time, else 0 */
	bool is_exact;
	uint32_t first, n; /* of `shown` */
};

struct v8_wait_frames {
	const struct v8_layout *layout;
	struct v8_names *named;
	struct pages pages, again;
	struct line_index lines;
	uint64_t effort; /* that is left for reading: a process could have the same read for ever */
	VEC(struct v8_wait_frame) frames; /* those that have names */
	VEC(uint32_t) shown; /* positions in the frames of `named` */
	struct u64map known; /* hash of one → position in it + 1 */
};

void v8_wait_frames_init(struct v8_wait_frames *waits, const struct v8_layout *layout, struct v8_names *named);
void v8_wait_frames_deinit(struct v8_wait_frames *waits);

/* What BPF needs to find them. False: this V8 has something where BPF does not look. */
bool v8_wait_frames_describe(const struct v8_layout *layout, const struct maps *maps, struct offcpu_v8 *out);

/* Names those of a stack, from the memory of the process. */
void v8_wait_frames_learn(struct v8_wait_frames *waits, struct mem *live, const struct raw_stack *raw);

/* What is shown for it; nothing: it could not be named. */
void v8_wait_frames_find(const struct v8_wait_frames *waits, const struct raw_stack *raw, const struct runtime_frame *frame,
			 struct v8_named *out);

#endif
