/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_PLACE_H
#define STAKEOUT_RUNTIME_PYTHON_PLACE_H

#include <stdint.h>

#include "base/map.h"
#include "model/maps.h"
#include "model/stack.h"
#include "runtime/python/chain.h"

/*
 * Which native frame each Python frame belongs to: the activation of the interpreter that runs it. Since 3.11 each
 * activation has something on the C stack that the chain knows the address of, and that lies in exactly one native frame;
 * before that each Python frame is an activation of its own, and they are told by their pc and counted.
 *
 * Writes an index of `raw` for each frame of the chain. Those whose native frame an incomplete walk did not reach get
 * raw->len. NULL, or why the two do not fit together. `known` has the pcs of native frames, by what they have on the C stack, as
 * they were found when the files were at hand: without these a walk may not know how far each frame reaches. It may be empty.
 */
const char *python_place(const struct python_layout *layout, const struct maps *maps, const struct raw_stack *raw,
			 const struct u64map *known, const struct python_chain *chain, uint32_t *out);

/*
 * What the interpreter is entered through says nothing of the program: the raw frames behind the one that executes it which
 * are only that, up to the next one that does. With -X perf each call goes through a few instructions made at run time.
 */
uint32_t python_last_native(const struct stack *stack, uint32_t raw, uint32_t next);

/*
 * What the interpreter has compiled is called by the activation whose frame it runs, and by nothing else: the raw frames
 * before the one that executes it which are of no file.
 */
uint32_t python_first_native(const struct stack *stack, uint32_t raw);

#endif
