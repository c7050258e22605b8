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

#endif
