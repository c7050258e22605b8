/* SPDX-License-Identifier: MIT */
#include "unwind/unwind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unwind/walk.h"

/* Cost in the budget: of a frame, and of a read of the live process. */
enum { FRAME_COST = 32, LIVE_COST = 64 };

static bool push_frame(struct walk *w, uint32_t flags)
{
	struct raw_frame frame = {
		.pc = w->regs.pc,
		.sp = w->regs.r[w->arch->dwarf_sp],
		.flags = flags | (w->exact ? 0 : FRAME_RETURN_ADDRESS),
	};

	return vec_push(w->out, frame);
}

/*
 * Work whose amount depends on the files and stacks of the process is charged to the budget; once that is refused, the
 * result is not reliable.
 */
static bool is_too_long(struct walk *w)
{
	uint64_t vaddr;
	const struct module *module = w->budget->refused ? modules_find(w->modules, w->regs.pc, &vaddr) : NULL;

	if (!w->budget->refused)
		return false;
	if (module)
		walk_end(w, STACK_NO_UNWIND_INFO, "the unwind information of %s takes too long to follow", module->info.path);
	else
		walk_end(w, STACK_NO_UNWIND_INFO, "the stacks of this process take too long to follow");
	return true;
}

static bool step(struct walk *w, struct caller *caller)
{
	bool found;

	w->budget->refused = false;
	found = budget_take(w->budget, FRAME_COST) && step_frame(w, caller);
	return !is_too_long(w) && found;
}

static void walk_to_end(struct walk *w, uint32_t depth)
{
	struct caller caller = {.regs = w->regs, .exact = true};

	for (;;) {
		w->regs = caller.regs;
		w->exact = caller.exact;
		w->sp_is_bound = caller.sp_is_bound;
		/*
		 * The rows of x86_64's PLT stubs use the pc in expressions, and refer to it by the return address
		 * column.
		 */
		if (!w->arch->ra_in_register)
			regs_put(&w->regs, w->arch->dwarf_ra, w->regs.pc);
		if (!push_frame(w, caller.flags)) {
			walk_end(w, STACK_DEPTH_LIMIT, "out of memory after %zu frames", w->out->len);
			return;
		}
		if (!step(w, &caller))
			return;
		if (caller.regs.pc == 0 && !caller.exact) {
			walk_end(w, STACK_COMPLETE, "%s", "");
			return;
		}
		if (!caller.exact && !walk_is_code(w, caller.regs.pc - 1)) { /* nothing was called from there */
			walk_end(w, STACK_NO_UNWIND_INFO, "0x%" PRIx64 " is not in executable memory", caller.regs.pc);
			return;
		}
		if (w->out->len >= depth) {
			walk_end(w, STACK_DEPTH_LIMIT, "the stack has more than %" PRIu32 " frames (--depth)", depth);
			return;
		}
	}
}

static void walk(struct walk *w, uint32_t depth)
{
	walk_to_end(w, depth);
	if (w->out->end == STACK_COMPLETE && w->is_unsure)
		walk_end(w, STACK_DOUBTFUL, "frames may be missing: a caller was found by searching the stack");
	if (w->out->end == STACK_COMPLETE && w->is_by_ehabi)
		walk_end(w, STACK_DOUBTFUL, "frames may be missing: exception tables, which are all that there is, tell of calls only");
}

static struct walk walk_init(const struct snapshot *snap, struct modules *modules, struct mem *mem,
			     const struct unwind_options *options, struct budget *budget, struct raw_stack *out)
{
	return (struct walk){
		.arch = snap->arch,
		.maps = &snap->maps,
		.modules = modules,
		.mem = mem,
		.out = out,
		.budget = budget,
		.steppers = options->steppers,
		.nsteppers = options->nsteppers,
	};
}

void unwind_regs(const struct snapshot *snap, struct modules *modules, const struct regs *regs, struct mem *mem,
		 const struct unwind_options *options, struct raw_stack *out)
{
	struct budget own = {.left = UNWIND_BUDGET};
	struct walk w = walk_init(snap, modules, mem, options, options->budget ? options->budget : &own, out);

	*out = (struct raw_stack){0};
	w.regs = *regs;
	walk(&w, options->depth ? options->depth : UNWIND_DEFAULT_DEPTH);
}

/* The snapshot's copies, then the live process. */
struct layered_mem {
	struct mem mem;
	struct snapshot_mem copies;
	struct mem *live;
	const struct walk *walk;
	uint64_t missing; /* the last address of data that neither has */
};

/* Whether it is in the part of the thread's own stack that --stack-size left out. */
static bool is_cut_off(const struct walk *w, uint64_t address)
{
	return w->stack && address >= w->stack->start && address < w->stack->region_end;
}

static ssize_t layered_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct layered_mem *m = (struct layered_mem *)mem;
	ssize_t got = m->copies.mem.read(&m->copies.mem, address, buf, len);

	if (got == (ssize_t)len || is_cut_off(m->walk, address))
		return got;
	if (m->live && budget_take(m->walk->budget, LIVE_COST))
		got = m->live->read(m->live, address, buf, len);
	if (got != (ssize_t)len && !m->walk->reads_code)
		m->missing = address;
	return got;
}

static void not_captured(const struct snap_thread *thread, struct raw_stack *out)
{
	out->end = STACK_NOT_CAPTURED;
	snprintf(out->error, sizeof(out->error), "%s", thread->why ? thread->why : "its registers were not captured");
}

/*
 * A thread that has just been created, and has not yet returned from the system call that did it. It has the registers of
 * who created it, which lead to a stack that is not its own.
 */
static bool is_newborn(const struct snapshot *snap, const struct snap_thread *thread)
{
	const struct arch *arch = snap->arch;
	uint64_t need = UINT64_C(1) << arch->user_syscall_nr | UINT64_C(1) << arch->user_syscall_result;
	const struct syscall_info *call;

	if ((thread->regs.valid & need) != need || thread->regs.v[arch->user_syscall_result] != 0)
		return false;
	call = arch_syscall(arch, (int64_t)thread->regs.v[arch->user_syscall_nr]);
	return call && (strcmp(call->name, "clone") == 0 || strcmp(call->name, "clone3") == 0);
}

void unwind_thread(const struct snapshot *snap, struct modules *modules, const struct snap_thread *thread,
		   const struct unwind_options *options, struct raw_stack *out)
{
	struct budget own = {.left = UNWIND_BUDGET}, *budget = options->budget ? options->budget : &own;
	struct layered_mem mem = {.mem = {.read = layered_read}, .live = options->live};
	struct walk w = walk_init(snap, modules, &mem.mem, options, budget, out);
	bool has_regs = thread->status == THREAD_CAPTURED || thread->status == THREAD_UNREADABLE;

	*out = (struct raw_stack){0};
	if (!has_regs || !arch_to_dwarf(snap->arch, &thread->regs, &w.regs)) {
		not_captured(thread, out);
		return;
	}
	snapshot_mem_init(&mem.copies, snap, thread);
	w.stack = &thread->stack;
	mem.walk = &w;
	if (is_newborn(snap, thread) && walk_follows_syscall(&w)) { /* that is the outermost frame of the thread */
		walk(&w, 1);
		out->end = out->len == 1 ? STACK_COMPLETE : out->end;
		out->error[0] = '\0';
	} else {
		walk(&w, options->depth ? options->depth : UNWIND_DEFAULT_DEPTH);
	}
	out->missing = out->end == STACK_COMPLETE ? 0 : mem.missing;
}
