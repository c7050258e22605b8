/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/source.h"
#include "proc/task.h"

enum { MAX_KERNEL_FRAMES = 127 };

struct kernel_stack {
	const char *text[MAX_KERNEL_FRAMES];
};

struct source_proc {
	struct source source;
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

static struct kernel_stack *stack_buffer(struct source_proc *s, size_t index)
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

static void observe_details(struct source_proc *s, const struct observe_request *request, size_t index,
			    struct observed *out)
{
	struct task_syscall sc;
	int rc = task_syscall(s->process, out->tid, &sc);

	if (rc == 0 && sc.running) {
		out->running = true;
		return;
	}
	if (rc == 0) {
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

static int observe(struct source *source, const struct observe_request *request, struct err *err,
		   struct observations *out)
{
	struct source_proc *s = (struct source_proc *)source;
	struct process_info info;
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
	/* With address space randomisation every exec moves the stack's start. */
	out->generation = process_info(s->process, &info) == 0 ? info.start_stack : 0;
	for (size_t i = 0; i < s->tids.len; i++) {
		struct task_status status;
		struct observed *o;

		/* Counters first: a thread that moves while the rest is read shows other counters in the next pass. */
		if (task_status(s->process, s->tids.data[i], &status) < 0)
			continue;
		if (!vec_reserve(out, out->len + 1))
			return err_set(err, ENOMEM, "out of memory");
		o = &out->data[out->len];
		*o = (struct observed){
			.tid = s->tids.data[i],
			.state = status.state,
			.running = status.state == 'R',
			.nvcsw = status.nvcsw,
			.nivcsw = status.nivcsw,
			.off_cpu_ns = -1,
		};
		memcpy(o->name, status.name, sizeof(o->name));
		if (!request->counters_only && !o->running && !state_is_dead(o->state))
			observe_details(s, request, out->len, o);
		out->len++;
	}
	return 0;
}

static void destroy(struct source *source)
{
	struct source_proc *s = (struct source_proc *)source;

	for (size_t i = 0; i < s->stacks.len; i++)
		free(s->stacks.data[i]);
	vec_deinit(&s->stacks);
	vec_deinit(&s->tids);
	free(s);
}

int source_proc_create(const struct process *process, struct err *err, struct source **out)
{
	struct source_proc *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->source = (struct source){.name = "proc", .observe = observe, .destroy = destroy};
	s->process = process;
	*out = &s->source;
	return 0;
}
