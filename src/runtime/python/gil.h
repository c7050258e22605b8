/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_GIL_H
#define STAKEOUT_RUNTIME_PYTHON_GIL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mem.h"
#include "model/snapshot.h"
#include "runtime/python/layout.h"

/* The lock that lets one thread of an interpreter run at a time. */
struct python_gil {
	uint64_t address;
	uint64_t holder; /* thread state; 0: nobody has it */
	bool settled;	 /* nobody is just taking it, or letting go of it: else the holder may be the one before */
};

/* False: it cannot be read, or this version's is not known. */
bool python_gil_read(const struct python_layout *layout, struct mem *mem, uint64_t interp, struct python_gil *out);

/* Whether the thread sleeps until it gets it. */
enum gil_wait {
	GIL_NOT_AWAITED,
	GIL_WAIT_UNKNOWN, /* it is stopped, and its registers are not known */
	GIL_AWAITED,
};

enum gil_wait python_gil_find_wait(const struct python_gil *gil, const struct arch *arch, const struct snap_thread *thread);

#endif
