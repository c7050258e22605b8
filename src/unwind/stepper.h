/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_STEPPER_H
#define STAKEOUT_UNWIND_STEPPER_H

#include <stdbool.h>
#include <stdint.h>

struct walk;
struct caller;

/*
 * How a language runtime steps through code that it made itself, and that no table describes. The walk asks the first that
 * owns the pc. A step may read the thread's memory (walk_read_word), and note in w->out->runtime what the frame stands for.
 * To add one: these two functions, and runtime_ops.stepper names them.
 */
enum step_result {
	STEP_FOUND,   /* the caller is certain */
	STEP_END,     /* there is none: walk_end() was called */
	STEP_UNKNOWN, /* it cannot tell: the walk goes on as through any other code made at run time */
};

struct stepper_ops {
	bool (*owns)(void *state, uint64_t pc);
	enum step_result (*step)(void *state, struct walk *w, struct caller *out);
};

struct stepper {
	const struct stepper_ops *ops;
	void *state;
};

#endif
