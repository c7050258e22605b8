/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <errno.h>

#include "base/cleanup.h"
#include "report/container.h"
#include "report/json_deadlock.h"
#include "report/json_frame.h"
#include "report/json_wait.h"
#include "report/json_writer.h"
#include "report/lacking.h"
#include "report/names.h"

/* docs/schema/snapshot.schema.json describes this document. */
static const char schema[] = "stakeout.snapshot/1";

struct json_report {
	struct json json;
	const struct report_options *options;
	const struct trace *trace;
};

static void put_capture(struct json *j, const struct snapshot *snap)
{
	const struct capture_info *info = &snap->capture;

	json_object(j, "capture");
	json_string(j, "method", info->method);
	json_string(j, "stop_mode", info->stop_mode);
	json_uint(j, "threads", snap->threads.len);
	json_uint(j, "stopped_threads", info->stopped_threads);
	json_uint(j, "retaken_threads", info->retaken_threads);
	json_thousandths(j, "max_pause_us", info->max_pause_ns);
	json_uint(j, "windows", info->windows);
	json_thousandths(j, "window_us", info->window_ns);
	json_uint(j, "cpus_taken", info->cpus_taken);
	if (info->instant_ns)
		json_time(j, "instant", info->instant_ns);
	else
		json_null(j, "instant");
	json_bool(j, "consistent", info->consistent);
	json_string(j, "inconsistent_reason", info->inconsistent_why);
	json_object_end(j);
}

static void put_timings(struct json *j, const struct trace_timings *t)
{
	json_object(j, "timings_ms");
	json_thousandths(j, "setup", t->setup_ns / 1000);
	json_thousandths(j, "capture", t->capture_ns / 1000);
	json_thousandths(j, "unwind", t->unwind_ns / 1000);
	json_thousandths(j, "save", t->save_ns / 1000);
	json_thousandths(j, "symbolize", t->symbolize_ns / 1000);
	json_thousandths(j, "total", t->total_ns / 1000);
	json_object_end(j);
}

static void put_notes(struct json_report *r)
{
	const struct snapshot *snap = r->trace->snap;

	json_array(&r->json, "notes");
	for (size_t i = 0; i < snap->notes.len; i++)
		json_string(&r->json, NULL, snap->notes.data[i]);
	for (size_t i = 0; i < r->trace->notes.len; i++)
		json_string(&r->json, NULL, r->trace->notes.data[i]);
	if (r->options->kernel && r->trace->kernel_symbols_error)
		json_string(&r->json, NULL, r->trace->kernel_symbols_error);
	json_array_end(&r->json);
}

static void put_syscall(struct json_report *r, const struct snap_thread *thread)
{
	const struct snap_syscall *call = &thread->syscall;
	const struct syscall_info *info = arch_syscall(snapshot_arch_of(r->trace->snap, thread), call->nr);
	struct json *j = &r->json;

	if (call->state != SYSCALL_IN) {
		json_null(j, "syscall");
		return;
	}
	json_object(j, "syscall");
	json_int(j, "nr", call->nr);
	json_string(j, "name", info ? info->name : NULL);
	json_array(j, "args");
	for (unsigned i = 0; i < syscall_nargs(info); i++)
		json_hex(j, NULL, call->args[i]);
	json_array_end(j);
	json_object_end(j);
}

static void put_registers(struct json_report *r, const struct user_regs *regs)
{
	const struct arch *arch = r->trace->snap->arch;

	json_object(&r->json, "registers");
	for (unsigned i = 0; i < arch->nuser_regs; i++)
		if (regs->valid >> i & 1)
			json_hex(&r->json, arch->user_reg_names[i], regs->v[i]);
	json_object_end(&r->json);
}

static void put_kernel_stack(struct json_report *r, const struct trace_thread *t)
{
	const struct stack *stack = r->options->kernel ? t->kernel : NULL;
	const char *error = r->trace->snap->capture.kernel_stack_error;

	json_stack(&r->json, "kernel_stack", stack, NULL);
	json_string(&r->json, "kernel_stack_error", r->options->kernel && !(stack && stack->len) ? error : NULL);
}

static void put_user_stack(struct json_report *r, const struct trace_thread *t)
{
	const struct raw_stack *raw = &t->raw;

	json_stack(&r->json, "user_stack", t->user, r->options->show_sp ? raw : NULL);
	json_string(&r->json, "user_stack_end", stack_end_name(raw->end));
	if (raw->end == STACK_COMPLETE || !raw->end_pc)
		json_null(&r->json, "user_stack_end_pc");
	else
		json_hex(&r->json, "user_stack_end_pc", raw->end_pc);
	json_string(&r->json, "user_stack_error", raw->error[0] ? raw->error : NULL);
}

static void put_runtime(struct json *j, const struct thread_runtime *runtime)
{
	if (!runtime->runtime) {
		json_null(j, "runtime");
		return;
	}
	json_object(j, "runtime");
	json_string(j, "name", runtime->runtime);
	json_string(j, "version", runtime->version);
	json_string(j, "thread_name", runtime->name);
	json_string(j, "state", runtime->state);
	json_string(j, "problem", runtime->problem);
	if (runtime->has_daemon)
		json_bool(j, "daemon", runtime->is_daemon);
	else
		json_null(j, "daemon");
	if (runtime->has_gil) {
		json_bool(j, "holds_gil", runtime->holds_gil);
		if (runtime->may_wait_for_gil)
			json_null(j, "waits_for_gil");
		else
			json_bool(j, "waits_for_gil", runtime->waits_for_gil);
	}
	json_object_end(j);
}

static void put_runtimes(struct json *j, const struct snapshot *snap)
{
	json_array(j, "runtimes");
	for (size_t i = 0; i < snap->runtimes.len; i++) {
		json_object(j, NULL);
		json_string(j, "name", snap->runtimes.data[i].name);
		json_string(j, "version", snap->runtimes.data[i].version);
		json_string(j, "problem", snap->runtimes.data[i].problem);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_thread(struct json_report *r, const struct trace_thread *t)
{
	const struct snap_thread *thread = t->thread;
	const char state[] = {thread->state ? thread->state : '?', '\0'};
	struct json *j = &r->json;

	json_object(j, NULL);
	json_int(j, "tid", thread->tid);
	json_int_or_null(j, "inner_tid", thread->inner_tid, thread->inner_tid);
	json_string(j, "name", thread->name);
	json_string(j, "state", state);
	json_string(j, "status", name_thread_status(thread->status));
	json_string(j, "capture", name_thread_capture(thread->capture));
	json_string(j, "status_reason", thread->why);
	json_bool(j, "stopped", thread->capture == CAPTURE_HELD);
	json_thousandths(j, "pause_us", thread->pause_ns);
	json_milliseconds(j, "off_cpu_ms", thread->off_cpu_ns);
	json_milliseconds(j, "cpu_ms", thread->cpu_ns);
	put_runtime(j, &t->runtime);
	put_syscall(r, thread);
	json_int_or_null(j, "cpu", t->thread->state == 'R' && t->thread->facts.cpu >= 0, t->thread->facts.cpu);
	json_wait(j, &t->wait);
	if (r->options->registers)
		put_registers(r, &thread->regs);
	put_kernel_stack(r, t);
	put_user_stack(r, t);
	json_int_or_null(j, "tracer_pid", thread->tracer, thread->tracer);
	json_object_end(j);
}

static void put_awaited(struct json *j, const struct trace_task *task)
{
	if (!task->awaits && !task->through) {
		json_null(j, "awaits");
		return;
	}
	json_object(j, "awaits");
	json_string(j, "type", task->awaits);
	json_string(j, "task", task->awaits_task);
	json_string(j, "through", task->through);
	json_object_end(j);
}

static void put_task(struct json *j, const struct trace_task *task)
{
	json_object(j, NULL);
	json_string(j, "runtime", task->runtime);
	json_string(j, "library", task->library);
	json_string(j, "name", task->name);
	json_int_or_null(j, "tid", task->tid, task->tid);
	json_string(j, "state", task_state_name(task->state));
	put_awaited(j, task);
	json_stack(j, "stack", task->stack, NULL);
	json_string(j, "problem", task->problem);
	json_object_end(j);
}

int report_json(const struct trace *trace, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out)
{
	struct json_report r = {.json = {.out = out}, .options = options, .trace = trace};
	_cleanup_(lacking_deinit) struct lacking lacking = {0};
	const struct snapshot *snap = trace->snap;

	if (!lacking_find(&lacking, trace))
		return -ENOMEM;
	report_begin();
	json_object(&r.json, NULL);
	json_string(&r.json, "schema", schema);
	json_int(&r.json, "pid", snap->pid);
	container_json(&r.json, snap->inner_pid, &snap->container);
	json_string(&r.json, "comm", snap->comm);
	json_string(&r.json, "exe", snap->exe);
	json_string(&r.json, "arch", snapshot_arch_of(snap, NULL)->name);
	json_time(&r.json, "taken_at", snap->taken_at_ns);
	put_runtimes(&r.json, snap);
	put_capture(&r.json, snap);
	put_timings(&r.json, &trace->timings);
	put_notes(&r);
	json_lacking(&r.json, &lacking);
	json_deadlocks(&r.json, deadlocks, snap, false);
	json_array(&r.json, "threads");
	for (size_t i = 0; i < trace->threads.len; i++)
		put_thread(&r, &trace->threads.data[i]);
	json_array_end(&r.json);
	json_array(&r.json, "tasks");
	for (size_t i = 0; i < trace->tasks.len; i++)
		put_task(&r.json, &trace->tasks.data[i]);
	json_array_end(&r.json);
	json_object_end(&r.json);
	fputc('\n', out);
	return report_flush(out);
}
