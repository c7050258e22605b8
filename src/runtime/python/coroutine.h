/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_COROUTINE_H
#define STAKEOUT_RUNTIME_PYTHON_COROUTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mem.h"
#include "runtime/python/chain.h"
#include "runtime/python/code.h"
#include "runtime/python/layout.h"

/*
 * Coroutines, and generators of either kind, which are the same to the interpreter: each has a frame of its own, which stays
 * when it is suspended. What it awaits is then the last of the values that the frame works with.
 */

enum python_coroutine_state {
	PYTHON_COROUTINE_CREATED, /* it has not begun */
	PYTHON_COROUTINE_SUSPENDED,
	PYTHON_COROUTINE_RUNNING, /* its frame is in the stack of a thread */
	PYTHON_COROUTINE_ENDED,   /* it has no frame any more */
};

struct python_coroutine {
	enum python_coroutine_state state;
	struct python_frame frame; /* unless it has ended */
	uint64_t awaits;           /* an object; 0: it is not suspended, or its caller is to go on without waiting */
};

/* Whether an object is one, by its type. */
bool python_is_coroutine(const struct python_layout *layout, struct mem *mem, uint64_t object);

/* Whether it is one that has not ended. */
bool python_coroutine_is_alive(const struct python_layout *layout, struct mem *mem, uint64_t object);

/* What its own words say. False: it is none, or cannot be read. */
bool python_coroutine_peek(const struct python_layout *layout, struct mem *mem, uint64_t object, struct python_coroutine *out);

/* Likewise, through codes->mem. False also if its frame is not at an instruction of a code object. */
bool python_coroutine_read(struct python_codes *codes, uint64_t object, struct python_coroutine *out);

/*
 * The coroutine that has to end for something that is awaited to be there: that itself, or what a helper of the interpreter,
 * as those that step through asynchronous generators, stands for. 0: it is none.
 */
uint64_t python_awaited_coroutine(const struct python_layout *layout, struct mem *mem, uint64_t object);

#endif
