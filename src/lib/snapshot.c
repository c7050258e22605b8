/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "lib/abi.h"
#include "lib/handle.h"
#include "lib/stack.h"
#include "proc/family.h"
#include "report/names.h"
#include "trace/tracing.h"

enum { DEFAULT_STACK_BYTES = 8 << 20, DEFAULT_STOP_TIMEOUT_MS = 1000, NS_PER_MS = 1000000 };

struct snapshot_process {
	struct tracing *tracing;
	const struct trace *trace;
	struct stack *bare; /* without names, one for each thread; NULL: they have names */
	struct notes notes;
	bool complete;
};

struct stakeout_snapshot {
	struct stakeout *owner;
	struct tracing_names names;
	VEC(struct snapshot_process) processes;
};

DEFINE_CLEANUP(snapshot, struct stakeout_snapshot *, stakeout_snapshot_free)

static void process_deinit(struct snapshot_process *process)
{
	for (size_t i = 0; process->bare && i < process->trace->threads.len; i++)
		vec_deinit(&process->bare[i]);
	free(process->bare);
	tracing_destroy(process->tracing);
	notes_deinit(&process->notes);
}

void stakeout_snapshot_free(struct stakeout_snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->processes.len; i++)
		process_deinit(&snapshot->processes.data[i]);
	vec_deinit(&snapshot->processes);
	handle_leave(snapshot->owner);
	free(snapshot);
}

static int check_options(const struct stakeout_snapshot_options *o, struct err *err)
{
	const uint64_t stops = o->flags & (STAKEOUT_STOP_ALL | STAKEOUT_STOP_NONE | STAKEOUT_STOP_HOLD), runtimes = STAKEOUT_RAW | STAKEOUT_NO_RUNTIMES;

	if (o->ntids && (o->flags & STAKEOUT_CHILDREN))
		return err_set(err, EINVAL, "single threads are those of one process: not with its children");
	if (stops & (stops - 1))
		return err_set(err, EINVAL, "all threads are to be held, or none, or those that run");
	if ((o->flags & runtimes) == runtimes)
		return err_set(err, EINVAL, "frames of runtimes are wanted, and not wanted");
	return 0;
}

static struct tracing_options tracing_options(const struct stakeout_snapshot_options *o)
{
	uint64_t timeout_ms = o->stop_timeout_ns ? o->stop_timeout_ns / NS_PER_MS : DEFAULT_STOP_TIMEOUT_MS;
	bool named = !(o->flags & STAKEOUT_NO_NAMES);

	return (struct tracing_options){
		.capture = {
			.no_waits = true, /* there is no function that tells them */
			.stop = o->flags & STAKEOUT_STOP_ALL    ? STOP_ALL
				: o->flags & STAKEOUT_STOP_NONE ? STOP_NONE
				: o->flags & STAKEOUT_STOP_HOLD ? STOP_HOLD
								: STOP_AUTO,
			.kernel_stacks = named && !(o->flags & STAKEOUT_NO_KERNEL),
			.stack_size = o->stack_bytes ? o->stack_bytes : DEFAULT_STACK_BYTES,
			.stop_timeout_ms = timeout_ms < UINT_MAX ? (unsigned)timeout_ms : UINT_MAX,
			.tids = o->tids,
			.ntids = o->ntids,
		},
		.depth = o->depth < UINT32_MAX ? (uint32_t)o->depth : UINT32_MAX,
		.no_runtimes = !named || (o->flags & STAKEOUT_NO_RUNTIMES),
	};
}

static bool fill_bare(const struct raw_stack *raw, struct stack *out)
{
	for (size_t i = 0; i < raw->len; i++) {
		const struct raw_frame *frame = &raw->data[i];
		bool is_signal = frame->flags & FRAME_SIGNAL;

		if (!vec_push(out, (struct frame){
					   .address = frame->pc,
					   .kind = is_signal ? FRAME_KIND_SIGNAL : FRAME_KIND_NATIVE,
					   .raw = (uint32_t)i,
					   .flags = frame->flags,
				   }))
			return false;
	}
	return true;
}

static int make_bare(struct snapshot_process *process, struct err *err)
{
	size_t n;

	process->trace = tracing_walked(process->tracing);
	n = process->trace->threads.len;
	process->bare = calloc(n ? n : 1, sizeof(*process->bare));
	for (size_t i = 0; process->bare && i < n; i++)
		if (!fill_bare(&process->trace->threads.data[i].raw, &process->bare[i]))
			return err_set(err, ENOMEM, "out of memory");
	return process->bare ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int name(struct stakeout_snapshot *snapshot, struct snapshot_process *process, struct err *err)
{
	struct trace *trace;
	int rc = tracing_name(process->tracing, &snapshot->names, err, &trace);

	process->trace = rc == 0 ? trace : NULL;
	return rc;
}

static void gather_notes(const struct stakeout *owner, struct snapshot_process *process)
{
	const struct trace *trace = process->trace;

	notes_add_all(&process->notes, &trace->snap->notes);
	notes_add_all(&process->notes, &trace->notes);
	process->complete = trace_is_complete(trace);
	if (handle_tell(owner, &process->notes))
		process->complete = false;
}

static int take(struct stakeout_snapshot *snapshot, struct process_id id, const struct stakeout_snapshot_options *o,
		struct err *err)
{
	const struct tracing_options options = tracing_options(o);
	struct snapshot_process process = {0};
	int rc = tracing_capture(id, &options, monotonic_ns(), err, &process.tracing);

	if (rc == 0)
		rc = o->flags & STAKEOUT_NO_NAMES ? make_bare(&process, err) : name(snapshot, &process, err);
	if (rc == 0 && !vec_push(&snapshot->processes, process))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0) {
		process_deinit(&process);
		return rc;
	}
	gather_notes(snapshot->owner, &snapshot->processes.data[snapshot->processes.len - 1]);
	return 0;
}

/* Of the first there must be something; of its children what there is. */
static int take_all(struct stakeout_snapshot *snapshot, pid_t pid, const struct stakeout_snapshot_options *o,
		    struct err *err)
{
	struct process_ids ids = {0};
	int rc = vec_push(&ids, (struct process_id){.pid = pid}) ? 0 : err_set(err, ENOMEM, "out of memory");

	if (rc == 0 && (o->flags & STAKEOUT_CHILDREN))
		rc = process_ids_add_descendants(&ids, err);
	if (rc == 0)
		rc = take(snapshot, ids.data[0], o, err);
	for (size_t i = 1; rc == 0 && i < ids.len; i++) {
		struct err why = {0};

		if (take(snapshot, ids.data[i], o, &why) == -ENOMEM)
			rc = err_set(err, ENOMEM, "out of memory");
		else if (why.code)
			notes_add(&snapshot->processes.data[0].notes, "%s", why.msg);
	}
	vec_deinit(&ids);
	return rc;
}

static int take_snapshot(struct stakeout *s, pid_t pid, const struct stakeout_snapshot_options *o, struct err *err,
			 struct stakeout_snapshot **out)
{
	_cleanup_(cleanup_snapshot) struct stakeout_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	int rc;

	if (!snapshot)
		return err_set(err, ENOMEM, "out of memory");
	snapshot->owner = handle_use(s);
	snapshot->names = (struct tracing_names){
		.native = s->names,
		.kernel = !(o->flags & STAKEOUT_NO_KERNEL),
		.raw = o->flags & STAKEOUT_RAW,
	};
	rc = process_check_mounted(err);
	if (rc == 0)
		rc = take_all(snapshot, pid, o, err);
	if (rc == 0)
		*out = steal_ptr(snapshot);
	return rc;
}

int stakeout_snapshot_take(struct stakeout *s, pid_t pid, const struct stakeout_snapshot_options *options,
			   struct stakeout_snapshot **out)
{
	const uint64_t flags = STAKEOUT_CHILDREN | STAKEOUT_NO_KERNEL | STAKEOUT_NO_RUNTIMES | STAKEOUT_RAW |
			       STAKEOUT_NO_NAMES | STAKEOUT_STOP_NONE | STAKEOUT_STOP_ALL | STAKEOUT_STOP_HOLD;
	struct stakeout_snapshot_options o;
	int rc;

	*out = NULL;
	handle_begin(s);
	rc = abi_read_options(options, &o, sizeof(o), flags, &s->err);
	if (rc == 0)
		rc = check_options(&o, &s->err);
	if (rc == 0)
		rc = take_snapshot(s, pid, &o, &s->err, out);
	handle_end();
	return rc;
}

size_t stakeout_snapshot_processes(const struct stakeout_snapshot *snapshot)
{
	return snapshot->processes.len;
}

int stakeout_snapshot_process(const struct stakeout_snapshot *snapshot, size_t index, struct stakeout_process *out)
{
	const struct snapshot_process *process;
	const struct snapshot *snap;
	struct stakeout_process p;

	if (index >= snapshot->processes.len)
		return -ERANGE;
	process = &snapshot->processes.data[index];
	snap = process->trace->snap;
	p = (struct stakeout_process){
		.pid = snap->pid,
		.complete = process->complete,
		.consistent = snap->capture.consistent,
		.why = snap->capture.inconsistent_why,
		.name = snap->comm,
		.exe = snap->exe,
		.nthreads = process->trace->threads.len,
		.nnotes = process->notes.len,
		.time_ns = snap->taken_at_ns,
		.method = snap->capture.method,
		.nheld = snap->capture.stopped_threads,
		.max_held_ns = snap->capture.max_pause_ns,
	};
	if (snapshot->names.kernel)
		p.kernel_problem = snap->capture.kernel_stack_error ? snap->capture.kernel_stack_error
								    : process->trace->kernel_symbols_error;
	return abi_write(out, &p, sizeof(p));
}

static const char *syscall_of(const struct snapshot *snap, const struct snap_thread *thread)
{
	const struct syscall_info *info = NULL;

	if (thread->syscall.state == SYSCALL_IN)
		info = arch_syscall(snapshot_arch_of(snap, thread), thread->syscall.nr);
	return info ? info->name : NULL;
}

int stakeout_snapshot_thread(const struct stakeout_snapshot *snapshot, size_t index, size_t number,
			     struct stakeout_thread *out)
{
	const struct snapshot_process *process;
	const struct trace_thread *trace;
	const struct snap_thread *thread;
	struct stakeout_thread t;

	if (index >= snapshot->processes.len || number >= snapshot->processes.data[index].trace->threads.len)
		return -ERANGE;
	process = &snapshot->processes.data[index];
	trace = &process->trace->threads.data[number];
	thread = trace->thread;
	t = (struct stakeout_thread){
		.tid = thread->tid,
		.state = thread->state,
		.complete = trace_thread_is_complete(trace),
		.held = thread->capture == CAPTURE_HELD,
		.name = trace_thread_name(trace),
		.status = name_thread_status(thread->status),
		.end = stack_end_name(trace->raw.end),
		.problem = thread->why ? thread->why : trace->raw.error[0] ? trace->raw.error : NULL,
		.user = stack_public(process->bare ? &process->bare[number] : trace->user),
		.kernel = stack_public(trace->kernel),
		.off_cpu_ns = thread->off_cpu_ns,
		.cpu_ns = thread->cpu_ns,
		.syscall = syscall_of(process->trace->snap, thread),
		.runtime = trace->runtime.runtime,
		.runtime_state = trace->runtime.state,
	};
	return abi_write(out, &t, sizeof(t));
}

const char *stakeout_snapshot_note(const struct stakeout_snapshot *snapshot, size_t process, size_t note)
{
	if (process >= snapshot->processes.len || note >= snapshot->processes.data[process].notes.len)
		return NULL;
	return snapshot->processes.data[process].notes.data[note];
}
