/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_STEP_H
#define STAKEOUT_RUNTIME_V8_STEP_H

#include "arch/arch.h"
#include "unwind/stepper.h"
#include "unwind/walk.h"

/*
 * Code that V8 makes keeps a frame pointer, but for its first and its last instructions. There the frame pointer is still,
 * or again, the caller's, and following it would leave that out.
 */
enum v8_frame_state {
	V8_FRAME_WHOLE,
	V8_FRAME_NONE,    /* the return address is where the call left it: in a register, or on the top of the stack */
	V8_FRAME_PUSHED,  /* so are both, but the frame pointer is not set yet */
	V8_FRAME_SCRATCH, /* x86_64: the return address is in a register, from which it goes back on the stack */
};

enum { V8_CODE_BEFORE = 4, V8_CODE_BEHIND = 32, V8_PROLOGUE = 16 };

/* By the code before and from where execution stands; `len` bytes of it are there, at least V8_CODE_BEFORE. */
enum v8_frame_state v8_frame_state(const struct arch *arch, const uint8_t *code, size_t len);

/* Whether the code has just set the frame pointer, and what belongs into the frame may not be there yet. */
bool v8_begins_frame(const struct arch *arch, const uint8_t *code, size_t len);

/* For struct stepper_ops: the pc is in code that was made at run time. */
enum step_result v8_step(struct walk *w, struct caller *out);

#endif
