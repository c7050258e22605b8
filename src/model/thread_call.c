/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "model/trace.h"

/* Aliases and versions have the name with something before or behind it. */
static bool has_function(const struct stack *stack, const char *name)
{
	for (size_t i = 0; stack && i < stack->len; i++)
		if (stack->data[i].symbol && strstr(stack->data[i].symbol, name))
			return true;
	return false;
}

static const struct syscall_info *find_call(const struct arch *arch, const char *name)
{
	for (unsigned i = 0; i < arch->nsyscalls; i++)
		if (arch->syscalls[i].name && strcmp(arch->syscalls[i].name, name) == 0)
			return &arch->syscalls[i];
	return NULL;
}

static bool is_pointer(uint64_t value)
{
	return value > UINT32_MAX && value < UINT64_C(1) << 63;
}

/* Which one, by the function that waits in the kernel or has called it; NULL: they do not tell. */
static const struct syscall_info *find_restarted(const struct arch *arch, const struct trace_thread *t)
{
	enum { MAX_CLOCK = 16, INNERMOST = 4 };
	const uint64_t *args = t->thread->syscall.args;
	const struct stack *kernel = t->kernel, *all = t->user;
	const struct stack user = {.data = all ? all->data : NULL,
				   .len = all && all->len < INNERMOST ? all->len
					  : all                       ? INNERMOST
								      : 0};

	if (has_function(kernel, "nanosleep") || has_function(&user, "nanosleep"))
		return find_call(arch, args[0] < MAX_CLOCK ? "clock_nanosleep" : "nanosleep");
	if (has_function(kernel, "futex_wait") || has_function(&user, "futex") || has_function(&user, "lll_lock"))
		return find_call(arch, "futex");
	if (has_function(kernel, "poll") || has_function(&user, "poll"))
		return find_call(arch, is_pointer(args[2]) ? "ppoll" : "poll");
	return NULL;
}

const struct syscall_info *trace_thread_call(const struct trace_thread *t, bool *restarted)
{
	const struct arch *arch = snapshot_arch_of(t->snap, t->thread);
	const bool is_in = t->thread->syscall.state == SYSCALL_IN;
	const struct syscall_info *call = is_in ? arch_syscall(arch, t->thread->syscall.nr) : NULL, *first = NULL;

	if (call && strcmp(call->name, "restart_syscall") == 0)
		first = find_restarted(arch, t);
	*restarted = first;
	return first ? first : call;
}
