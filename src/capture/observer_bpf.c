/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/observer.h"
#include "kernel/task_iter.h"

enum { MAX_PASSES = 5 };

struct observer_bpf {
	struct observer observer;
	const struct process *process;
	struct task_iter *iter;
};

static struct thread_facts facts_of(const struct task_record *record)
{
	struct thread_facts facts = {
		.cpu = record->flags & TASK_HAS_CPU ? (int32_t)record->cpu : -1,
		.timer_ns = record->flags & TASK_HAS_TIMER ? record->timer_ns : NO_TIMER,
		.throttled = record->flags & TASK_THROTTLED,
		.files = record->files,
	};

	if (task_record_state(record) == 'T' && record->stop_signal <= UINT8_MAX)
		facts.stop_signal = (uint8_t)record->stop_signal;
	if (record->flags & TASK_HAS_AHEAD)
		facts.ahead = (struct wait_peer){.pid = (pid_t)record->ahead_tgid, .comm = record->ahead_comm};
	return facts;
}

void observation_of_record(const struct task_record *record, bool counters_only, struct observation *out)
{
	*out = (struct observation){
		.tid = (pid_t)record->tid,
		.state = task_record_state(record),
		.running = record->flags & TASK_ON_CPU,
		.on_cpu = record->flags & TASK_ON_CPU,
		.nvcsw = record->nvcsw,
		.nivcsw = record->nivcsw,
		.runs = record->runs,
		.has_runs = record->flags & TASK_HAS_RUNS && record->runs, /* a kernel that does not keep it says 0 */
		.off_cpu_ns = -1,
		.cpu_ns = (int64_t)record->cpu_ns,
	};
	memcpy(out->name, record->comm, sizeof(record->comm));
	out->facts = thread_facts_none;
	if (counters_only)
		return;
	out->facts = facts_of(record);
	out->kernel_worker = task_record_is_kernel_worker(record);
	if (record->flags & TASK_HAS_OFF_CPU && !out->running)
		out->off_cpu_ns = (int64_t)record->off_cpu_ns;
	if (record->flags & TASK_HAS_REGS && !out->running && !out->kernel_worker) {
		task_record_registers(record, &out->regs);
		task_record_syscall(record, &out->syscall);
	}
	if (record->flags & TASK_HAS_REGS)
		out->altstack = (struct altstack){.known = true, .start = record->altstack_start, .len = record->altstack_len};
	out->tid_address = record->tid_address;
	out->start = record->start_ns;
	out->place = (struct thread_place){
		.task = record->task,
		.regs = record->user_regs,
		.start_ns = record->start_ns,
		.cpu = record->cpu,
		.rt_priority = record->rt_priority,
	};
}

static int one_pass(struct observer_bpf *s, const struct observe_request *request, struct err *err,
		    struct observations *out)
{
	struct task_iter_request pass = {
		.only_tid = request->only_tid,
		.counters_only = request->counters_only,
		.kernel_stacks = request->kernel_stacks,
	};
	const struct task_record *record;
	struct observation *o;
	const __u64 *kernel;
	size_t pos = 0;
	int rc = task_iter_pass(s->iter, &pass, err);

	if (rc < 0)
		return rc;
	out->len = 0;
	out->generation = 0;
	while ((record = task_iter_next(s->iter, &pos, &kernel))) {
		if (!vec_reserve(out, out->len + 1))
			return err_set(err, ENOMEM, "out of memory");
		o = &out->data[out->len++];
		observation_of_record(record, request->counters_only, o);
		o->kernel_pcs = (const uint64_t *)kernel;
		o->nkernel = record->nkernel;
		o->kernel_error = record->kernel_error;
		if (!out->generation)
			out->generation = record->mm;
	}
	return 0;
}

/* The kernel ends a pass over one process early when the thread that it stands at ends just then: count and repeat. */
static int observe(struct observer *observer, const struct observe_request *request, struct err *err,
		   struct observations *out)
{
	struct observer_bpf *s = (struct observer_bpf *)observer;
	int rc = 0, there = 0;

	for (int i = 0; i < MAX_PASSES; i++) {
		rc = one_pass(s, request, err, out);
		if (rc < 0 || request->only_tid)
			return rc;
		there = process_count_threads(s->process);
		if (there <= (int)out->len)
			break;
	}
	if (there > 0 && !out->len) /* some sandboxes hide processes from it */
		return err_set(err, ENOENT, "BPF's task iterator does not list process %d", (int)s->process->pid);
	return there < 0 || !out->len ? err_set(err, ESRCH, "process %d has ended", (int)s->process->pid) : 0;
}

static void destroy(struct observer *observer)
{
	task_iter_destroy(((struct observer_bpf *)observer)->iter);
	free(observer);
}

/* `rc` is what making the iterator gave, which is taken over. */
static int create(const struct process *process, int rc, struct task_iter *iter, struct err *err, struct observer **out)
{
	struct observer_bpf *s;

	if (rc < 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s) {
		task_iter_destroy(iter);
		return err_set(err, ENOMEM, "out of memory");
	}
	*s = (struct observer_bpf){
		.observer = {.name = "bpf", .slow_why = task_iter_passed_over(iter), .observe = observe, .destroy = destroy},
		.process = process,
		.iter = iter,
	};
	*out = &s->observer;
	return 0;
}

int observer_bpf_create(const struct process *process, struct err *err, struct observer **out)
{
	struct task_iter *iter = NULL;
	int rc = task_iter_create(process->pid, err, &iter);

	return create(process, rc, iter, err, out);
}

int observer_libbpf_create(const struct process *process, struct err *err, struct observer **out)
{
	struct task_iter *iter = NULL;
	int rc = task_iter_create_by_libbpf(process->pid, err, &iter);

	return create(process, rc, iter, err, out);
}

int observer_beside_create(const struct observer *other, const struct process *process, struct err *err, struct observer **out)
{
	struct task_iter *iter = NULL;
	int rc = task_iter_create_beside(((const struct observer_bpf *)other)->iter, process->pid, err, &iter);

	return create(process, rc, iter, err, out);
}
