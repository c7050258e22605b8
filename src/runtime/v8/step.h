/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_STEP_H
#define STAKEOUT_RUNTIME_V8_STEP_H

#include "arch/arch.h"
#include "bpf/v8_code.h"
#include "unwind/stepper.h"
#include "unwind/walk.h"

/* By the code before and from where execution stands; `len` bytes of it are there, at least V8_CODE_BEFORE. */
enum v8_frame_state v8_frame_state(const struct arch *arch, const uint8_t *code, size_t len);

/* Whether the code has just set the frame pointer, and what belongs into the frame may not be there yet. */
bool v8_begins_frame(const struct arch *arch, const uint8_t *code, size_t len);

/* For struct stepper_ops: the pc is in code that was made at run time. */
enum step_result v8_step(struct walk *w, struct caller *out);

#endif
