/* SPDX-License-Identifier: MIT */
#include "runtime/python/gil.h"

enum { GIL_SIZE = 208 }; /* struct _gil_runtime_state: an interval, two words and a count, two condition variables with mutexes */

bool python_gil_read(const struct python_layout *layout, struct mem *mem, uint64_t interp, struct python_gil *out)
{
	uint64_t holder;
	int32_t locked;

	*out = (struct python_gil){0};
	if (layout->at[PY_RUNTIME_GIL])
		out->address = layout->at[PY_RUNTIME] + layout->at[PY_RUNTIME_GIL];
	else if (!layout->at[PY_INTERP_GIL] ||
		 !mem_read_exact(mem, interp + layout->at[PY_INTERP_GIL], &out->address, sizeof(out->address)) || !out->address)
		return false;
	if (!mem_read_exact(mem, out->address + layout->at[PY_GIL_HOLDER], &holder, sizeof(holder)) ||
	    !mem_read_exact(mem, out->address + layout->at[PY_GIL_LOCKED], &locked, sizeof(locked)))
		return false;
	/* The holder stays set after it has let go; before the first thread takes it, it is not locked but -1. */
	out->holder = locked == 1 ? holder : 0;
	return true;
}

/* Any system call whose first argument is in it is a futex one. */
bool python_gil_is_awaited(const struct python_gil *gil, const struct snap_thread *thread)
{
	return thread->syscall.state == SYSCALL_IN && gil->address && thread->syscall.args[0] >= gil->address &&
	       thread->syscall.args[0] - gil->address < GIL_SIZE;
}
