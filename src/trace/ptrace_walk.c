/* SPDX-License-Identifier: MIT */
#include "trace/ptrace_walk.h"

#include "unwind/unwind.h"

void ptrace_walk_deinit(struct ptrace_walk *walk)
{
	for (size_t i = 0; i < walk->stacks.len; i++)
		raw_stack_deinit(&walk->stacks.data[i]);
	vec_deinit(&walk->stacks);
	u64map_deinit(&walk->by_tid);
}

/* What was walked before does not count: the process is held anew, perhaps with another program. */
int ptrace_walk_begin(void *arg, struct snapshot *snap, struct err *err)
{
	struct ptrace_walk *walk = arg;

	ptrace_walk_deinit(walk);
	walk->budget = (struct budget){.left = UNWIND_BUDGET};
	return target_open_files(walk->target, &walk->files, err);
}

void ptrace_walk_thread(void *arg, struct snapshot *snap, pid_t tid, const struct user_regs *user, struct mem *peek)
{
	struct ptrace_walk *walk = arg;
	const struct unwind_options options = {.depth = walk->depth, .budget = &walk->budget};
	struct raw_stack stack;
	struct regs regs;
	uint64_t *slot;
	bool created;

	if (!walk->target->modules || !arch_to_dwarf(snap->arch, user, &regs))
		return;
	slot = u64map_put(&walk->by_tid, (uint64_t)tid, &created);
	if (!slot)
		return;
	unwind_regs(snap, walk->target->modules, &regs, peek, &options, &stack);
	*slot = walk->stacks.len;
	if (!vec_push(&walk->stacks, stack))
		raw_stack_deinit(&stack);
}

bool ptrace_walk_take(struct ptrace_walk *walk, pid_t tid, struct raw_stack *out)
{
	uint64_t *slot = u64map_find(&walk->by_tid, (uint64_t)tid);
	struct raw_stack *stack = slot && *slot < walk->stacks.len ? &walk->stacks.data[*slot] : NULL;

	if (!stack || (!stack->len && !stack->error[0]))
		return false;
	*out = *stack;
	*stack = (struct raw_stack){0};
	return true;
}
