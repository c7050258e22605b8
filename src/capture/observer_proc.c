/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/observer.h"
#include "proc/task.h"

enum { MAX_KERNEL_FRAMES = 127 };

struct kernel_stack {
	const char *text[MAX_KERNEL_FRAMES];
};

struct observer_proc {
	struct observer observer;
	const struct process *process;
	struct tid_list tids;
	VEC(struct kernel_stack *) stacks; /* one for each thread of the last pass, reused by the next */
};

/* What "syscall" tells of the registers: pc, sp, and the arguments where they still are. */
static void fill_registers(const struct task_syscall *sc, struct user_regs *regs)
{
	const struct arch *arch = arch_host();

	regs->v[arch->user_pc] = sc->pc;
	regs->v[arch->user_sp] = sc->sp;
	regs->valid = UINT64_C(1) << arch->user_pc | UINT64_C(1) << arch->user_sp;
	if (!sc->in_syscall)
		return;
	regs->v[arch->user_syscall_nr] = (uint64_t)sc->nr;
	regs->valid |= UINT64_C(1) << arch->user_syscall_nr;
	for (unsigned i = 0; i < 6; i++) {
		regs->v[arch->user_syscall_args[i]] = sc->args[i];
		regs->valid |= UINT64_C(1) << arch->user_syscall_args[i];
	}
}

static struct kernel_stack *stack_buffer(struct observer_proc *s, size_t index)
{
	while (s->stacks.len <= index) {
		struct kernel_stack *fresh = malloc(sizeof(*fresh));

		if (!fresh || !vec_push(&s->stacks, fresh)) {
			free(fresh);
			return NULL;
		}
	}
	return s->stacks.data[index];
}

static void observe_details(struct observer_proc *s, const struct observe_request *request, size_t index,
			    struct observation *out)
{
	struct task_syscall sc;
	int rc = task_syscall(s->process, out->tid, &sc);

	if (rc == 0 && sc.running) {
		out->running = true;
		return;
	}
	if (rc == 0 && !sc.sp && !sc.pc) {
		out->kernel_worker = true;
	} else if (rc == 0) {
		fill_registers(&sc, &out->regs);
		out->syscall.state = sc.in_syscall ? SYSCALL_IN : SYSCALL_NONE;
		out->syscall.nr = sc.nr;
		memcpy(out->syscall.args, sc.args, sizeof(sc.args));
	} else {
		out->regs_error = rc;
	}
	if (request->kernel_stacks) {
		struct kernel_stack *stack = stack_buffer(s, index);
		int n = stack ? task_kernel_stack(s->process, out->tid, request->arena, stack->text, MAX_KERNEL_FRAMES) : -ENOMEM;

		out->kernel_error = n < 0 ? n : 0;
		out->nkernel = n < 0 ? 0 : (unsigned)n;
		out->kernel_text = n < 0 ? NULL : stack->text;
	}
}

/*
 * A thread that is about to sleep shows state S already while it still runs. Where the kernel does not count how
 * often it got a CPU, "syscall" tells: the kernel waits there until the thread has left its CPU.
 */
static bool still_runs(struct observer_proc *s, pid_t tid)
{
	struct task_syscall sc;

	return task_syscall(s->process, tid, &sc) == 0 && sc.running;
}

/* False when the thread has ended. */
static bool observe_thread(struct observer_proc *s, const struct observe_request *request, pid_t tid, size_t index,
			   struct observation *out)
{
	struct task_status status;
	uint64_t runs = 0, cpu_ns = 0;
	/* Counters first: a thread that runs while the rest is read shows other counters in the next pass. */
	bool has_runs = task_runs(s->process, tid, &runs, &cpu_ns) == 0 && runs; /* a kernel that does not keep it says 0 */
	bool moves = !has_runs && request->counters_only && still_runs(s, tid);

	if (task_status(s->process, tid, &status) < 0)
		return false;
	*out = (struct observation){
		.tid = tid,
		.state = status.state,
		.running = status.state == 'R' || moves,
		.nvcsw = status.nvcsw,
		.nivcsw = status.nivcsw,
		.runs = runs,
		.has_runs = has_runs,
		.off_cpu_ns = -1,
		.cpu_ns = has_runs ? (int64_t)cpu_ns : -1,
		.facts = thread_facts_none,
	};
	memcpy(out->name, status.name, sizeof(out->name));
	if (request->counters_only || state_is_dead(out->state))
		return true;
	task_start(s->process, tid, &out->start);
	if (!out->running)
		observe_details(s, request, index, out);
	else
		out->kernel_worker = task_is_kernel_worker(s->process, tid);
	return true;
}

static int observe(struct observer *observer, const struct observe_request *request, struct err *err,
		   struct observations *out)
{
	struct observer_proc *s = (struct observer_proc *)observer;
	int rc = 0;

	if (request->only_tid) {
		s->tids.len = 0;
		if (!vec_push(&s->tids, request->only_tid))
			rc = -ENOMEM;
	} else {
		rc = process_list_tids(s->process, &s->tids);
	}
	if (rc < 0)
		return err_set(err, -rc, "the threads of process %d: %s", (int)s->process->pid, strerror(-rc));
	out->len = 0;
	out->generation = process_generation(s->process);
	for (size_t i = 0; i < s->tids.len; i++) {
		if (!vec_reserve(out, out->len + 1))
			return err_set(err, ENOMEM, "out of memory");
		if (observe_thread(s, request, s->tids.data[i], out->len, &out->data[out->len]))
			out->len++;
	}
	return out->len || request->only_tid ? 0 : err_set(err, ESRCH, "process %d has ended", (int)s->process->pid);
}

static void destroy(struct observer *observer)
{
	struct observer_proc *s = (struct observer_proc *)observer;

	for (size_t i = 0; i < s->stacks.len; i++)
		free(s->stacks.data[i]);
	vec_deinit(&s->stacks);
	vec_deinit(&s->tids);
	free(s);
}

int observer_proc_create(const struct process *process, struct err *err, struct observer **out)
{
	struct observer_proc *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->observer = (struct observer){.name = "proc", .observe = observe, .destroy = destroy};
	s->process = process;
	*out = &s->observer;
	return 0;
}
