/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_CHAIN_H
#define STAKEOUT_RUNTIME_PYTHON_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/runtime_layout.h"
#include "model/mem.h"
#include "runtime/python/layout.h"

/*
 * The frames of one thread, as its thread state has them, before anything but their own words has been read: this is all
 * that can change while the thread runs, and all that is read while it is held. Nothing here allocates.
 */

enum { PYTHON_MAX_FRAMES = 1024 };

struct python_frame {
	uint64_t address;
	uint64_t code;   /* object */
	uint64_t instr;  /* address of an instruction; PY_FRAMES_OBJECTS: an int, the number of one */
	uint64_t anchor; /* what the activation of the interpreter that runs it has on the C stack; 0: not known */
	uint32_t version; /* of the code object, as it was seen when the frame was read (sightings.h); 0: not known */
};

struct python_chain {
	struct python_frame frames[PYTHON_MAX_FRAMES]; /* innermost first */
	size_t len;
	bool cut;            /* there are more */
	const char *problem; /* why it does not hold together; NULL: it does */
};

/* How many bytes of a frame are read. */
size_t python_frame_size(const struct python_layout *layout);

/* One frame by its address, wherever it is; it has no anchor. */
bool python_frame_read(const struct python_layout *layout, struct mem *mem, uint64_t address, struct python_frame *out);

/* `thread` and `native` are what the list said of the thread state (threads.h). False: it is not the thread's any more. */
bool python_tstate_is(const struct python_layout *layout, struct mem *mem, uint64_t tstate, uint64_t thread, pid_t native);

/* The innermost frame alone, which has no anchor. */
bool python_chain_first(const struct python_layout *layout, struct mem *mem, uint64_t tstate, struct python_frame *out);

void python_chain_read(const struct python_layout *layout, struct mem *mem, uint64_t tstate, struct python_chain *out);

/* What BPF follows to a thread's frames, as python_chain_read() does, and to their places, as python_place() does. */
void python_chain_describe(const struct python_layout *layout, struct offcpu_python *out);

#endif
