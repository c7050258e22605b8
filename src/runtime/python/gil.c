/* SPDX-License-Identifier: MIT */
#include "runtime/python/gil.h"

#include <linux/futex.h>
#include <string.h>

enum { GIL_SIZE = 208 }; /* struct _gil_runtime_state: an interval, two words and a count, two condition variables with mutexes */

bool python_gil_read(const struct python_layout *layout, struct mem *mem, uint64_t interp, struct python_gil *out)
{
	uint64_t holder, mutex;
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
	out->settled = mem_read_exact(mem, out->address + layout->at[PY_GIL_MUTEX], &mutex, sizeof(mutex)) && !mutex;
	return true;
}

static bool is_in(const struct python_gil *gil, uint64_t address)
{
	return gil->address && address >= gil->address && address - gil->address < GIL_SIZE;
}

static bool has_register(const struct snap_thread *thread, unsigned reg)
{
	return thread->regs.valid >> reg & 1;
}

/* A stopped thread was taken out of its system call, and will make it again: its registers are as they were before that. */
static enum gil_wait find_wait_of_stopped(const struct python_gil *gil, const struct arch *arch, const struct snap_thread *thread)
{
	const uint64_t *regs = thread->regs.v;
	const struct syscall_info *call;
	uint64_t op;

	if (!has_register(thread, arch->user_syscall_nr) || !has_register(thread, arch->user_syscall_args[0]) ||
	    !has_register(thread, arch->user_syscall_args[1]))
		return GIL_WAIT_UNKNOWN;
	call = arch_syscall(arch, (int64_t)regs[arch->user_syscall_nr]);
	op = regs[arch->user_syscall_args[1]] & (uint64_t)FUTEX_CMD_MASK;
	return call && strcmp(call->name, "futex") == 0 && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET) &&
			       is_in(gil, regs[arch->user_syscall_args[0]])
		       ? GIL_AWAITED
		       : GIL_NOT_AWAITED;
}

/* Any system call whose first argument is in it is a futex one. */
enum gil_wait python_gil_find_wait(const struct python_gil *gil, const struct arch *arch, const struct snap_thread *thread)
{
	if (thread->syscall.state == SYSCALL_IN)
		return is_in(gil, thread->syscall.args[0]) ? GIL_AWAITED : GIL_NOT_AWAITED;
	return thread->state == 'T' || thread->state == 't' ? find_wait_of_stopped(gil, arch, thread) : GIL_NOT_AWAITED;
}
