/* SPDX-License-Identifier: MIT */
#include "trace/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/background.h"
#include "base/clock.h"
#include "proc/task.h"
#include "runtime/made_code.h"
#include "runtime/runtime.h"
#include "symbol/symbolizer.h"
#include "symbol/variable_names.h"
#include "target/target.h"
#include "trace/ptrace_walk.h"
#include "trace/walking.h"
#include "unwind/go_copies.h"
#include "unwind/unwind.h"
#include "wait/waits.h"

enum {
	MAX_EXECS = 3,
	MAX_LOOKS = 64, /* at threads that run: hardly a machine has more CPUs that are worth to be left alone */
};

struct tracing {
	struct target *target;
	struct snapshot *snap;
	struct runtimes runtimes;
	bool runtimes_found; /* before threads were looked at, for this snapshot */
	const struct snapshot *go_snap; /* the one that is being taken, if it may be of a Go program, */
	struct go_heap go_heap;		/* whose heap is there */
	struct modules_options files;
	bool no_runtimes;
	bool no_waits;
	bool locals;
	struct symbolizer_options symbolizing;
	struct symbolizer *symbolizer;
	struct trace trace;
	uint64_t started_ns;
	uint64_t stage_ns; /* when the stage that is going on began */
	cpu_set_t busy;    /* if has_busy: found beforehand */
	bool has_busy;
	uint64_t rested_ns; /* since when nothing is done for it; 0: it is going on */
};

/* What is asked of the thread that finds names. */
struct naming {
	struct tracing *tracing;
	bool kernel;
	bool ok;
};

static void begin(struct tracing *t, uint64_t started_ns)
{
	t->started_ns = started_ns;
	t->stage_ns = started_ns;
}

/* The time since the stage before has ended is this one's. */
static void end_stage(struct tracing *t, uint64_t *ns)
{
	uint64_t now = monotonic_ns();

	*ns += now - t->stage_ns;
	t->stage_ns = now;
}

void tracing_destroy(struct tracing *t)
{
	if (!t)
		return;
	trace_deinit(&t->trace);
	symbolizer_destroy(t->symbolizer);
	runtimes_deinit(&t->runtimes);
	target_close(t->target);
	snapshot_destroy(t->snap);
	free(t);
}

const struct snapshot *tracing_snapshot(const struct tracing *t)
{
	return t->snap;
}

const struct trace *tracing_walked(const struct tracing *t)
{
	return &t->trace;
}

void tracing_saved(struct tracing *t)
{
	end_stage(t, &t->trace.timings.save_ns);
}

void tracing_rest(struct tracing *t)
{
	t->rested_ns = monotonic_ns();
}

void tracing_go_on(struct tracing *t)
{
	uint64_t rest = t->rested_ns ? monotonic_ns() - t->rested_ns : 0;

	t->started_ns += rest;
	t->stage_ns += rest;
	t->rested_ns = 0;
	tracing_find_busy(t, &t->busy);
	t->has_busy = true;
}

void tracing_keep_names(struct tracing *t)
{
	modules_keep_symbols(t->target->modules);
}

const struct target *tracing_target(const struct tracing *t)
{
	return t->target;
}

static int walk(struct tracing *t, struct capture *capture, struct ptrace_walk *walked, const struct tracing_options *o,
		struct err *err)
{
	struct budget budget = {.left = UNWIND_BUDGET};
	const struct walking walking = {
		.target = t->target,
		.capture = capture,
		.walked = walked,
		.runtimes = &t->runtimes,
		.wants_waits = !o->capture.no_waits,
		.depth = o->depth,
		.budget = &budget,
	};
	int rc = 0;

	if (!o->no_runtimes && t->snap->arch->word == 8 && !t->runtimes_found && !runtimes_init(&t->runtimes, t->target))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0 && o->locals)
		runtimes_want_locals(&t->runtimes);
	if (rc == 0)
		rc = walking_run(&walking, &t->trace, err);
	t->trace.snap = t->snap;
	end_stage(t, &t->trace.timings.unwind_ns);
	return rc;
}

static int open_target(struct process_id id, struct err *err, struct target **out)
{
	int pid = (int)id.pid, rc = target_open(id.pid, err, out);
	pid_t tgid = rc == -EINVAL ? process_of_thread(id.pid) : 0;

	if (rc == 0)
		return process_check_id(&(*out)->process, id, err);
	if (!tgid)
		return rc;
	return err_set(err, EINVAL, "%d is a thread of process %d: use `stakeout %d -t %d`", pid, (int)tgid, (int)tgid, pid);
}

/* The files of a snapshot that was taken. -EAGAIN: the process has executed another program before they were opened. */
static int open_files(struct tracing *t, struct err *err)
{
	int rc = 0;

	target_set_snapshot(t->target, t->snap);
	if (!t->target->modules) /* else they were opened before the process was held */
		rc = target_open_files(t->target, &t->files, err);
	if (rc == 0 && target_check(t->target, err) == -EAGAIN)
		rc = -EAGAIN;
	end_stage(t, &t->trace.timings.unwind_ns);
	return rc;
}

static void drop_snapshot(struct tracing *t)
{
	t->runtimes_found = false;
	target_set_snapshot(t->target, NULL);
	snapshot_destroy(steal_ptr(t->snap));
}

/* For struct thread_reader: runtimes whose frames change are found before threads are looked at. */
static bool find_runtimes(void *arg, struct snapshot *snap)
{
	struct tracing *t = arg;

	runtimes_deinit(&t->runtimes);
	t->runtimes_found = !t->no_runtimes && snap->arch->word == 8 && runtimes_are_likely(&snap->maps, &t->target->memory.mem) &&
			    target_open_files(t->target, &t->files, NULL) == 0 && runtimes_init(&t->runtimes, t->target);
	if (t->runtimes_found && t->locals)
		runtimes_want_locals(&t->runtimes);
	t->go_snap = snap->arch->word == 8 && go_copies_are_likely(snap->arch, &snap->maps, &t->go_heap) ? snap : NULL;
	return t->go_snap || (t->runtimes_found && t->runtimes.len);
}

static void refresh_runtimes(void *arg)
{
	struct tracing *t = arg;

	runtimes_refresh(&t->runtimes);
}

static void read_runtimes(void *arg, pid_t tid, const struct user_regs *regs, struct mem *mem)
{
	struct tracing *t = arg;

	runtimes_read(&t->runtimes, tid, mem);
	if (t->go_snap)
		go_copies_read(t->go_snap->arch, &t->go_snap->maps, &t->go_heap, regs, mem);
}

/* A process that is about to be captured. */
struct prepared {
	struct tracing *tracing;
	struct capture *capture;
	struct thread_reader reader;
	struct ptrace_walk walked;
};

static void deinit_prepared(struct prepared *p)
{
	capture_close(p->capture);
	ptrace_walk_deinit(&p->walked);
	tracing_destroy(p->tracing);
}

/* `p` stays where it is from then on. `beside` is the capture of another process, or NULL. */
static int prepare(struct prepared *p, struct process_id id, const struct tracing_options *o, const struct capture *beside,
		   uint64_t started_ns, struct err *err)
{
	struct capture_options options = o->capture;
	struct tracing *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	p->tracing = t;
	t->files = (struct modules_options){.ignore_deleted = o->ignore_deleted};
	t->locals = o->locals;
	t->no_runtimes = o->no_runtimes;
	t->no_waits = o->capture.no_waits;
	p->walked = (struct ptrace_walk){.files = t->files, .depth = o->depth};
	p->reader = (struct thread_reader){.begin = find_runtimes, .refresh = refresh_runtimes, .read = read_runtimes, .arg = t};
	options.reader = &p->reader;
	options.beside = beside;
	begin(t, started_ns);
	if (o->ptrace) {
		options.on_hold = ptrace_walk_begin;
		options.on_held = ptrace_walk_thread;
		options.on_held_arg = &p->walked;
	}
	rc = open_target(id, err, &t->target);
	p->walked.target = t->target;
	if (rc == 0)
		rc = capture_open(t->target, &options, err, &p->capture);
	if (rc == 0)
		end_stage(t, &t->trace.timings.setup_ns);
	return rc;
}

/* `rc` is what taking the snapshot gave. */
static int finish(struct prepared *p, const struct tracing_options *o, int rc, struct err *err, struct tracing **out)
{
	struct tracing *t = p->tracing;

	end_stage(t, &t->trace.timings.capture_ns);
	if (rc == 0)
		rc = open_files(t, err);
	for (int tries = 0; rc == -EAGAIN && tries < MAX_EXECS; tries++) {
		drop_snapshot(t);
		rc = capture_take(p->capture, err, &t->snap);
		end_stage(t, &t->trace.timings.capture_ns);
		if (rc == 0)
			rc = open_files(t, err);
	}
	if (rc == 0)
		rc = walk(t, p->capture, o->ptrace ? &p->walked : NULL, o, err);
	if (rc == 0)
		*out = steal_ptr(p->tracing);
	return rc;
}

int tracing_capture(struct process_id id, const struct tracing_options *o, uint64_t started_ns, struct err *err,
		    struct tracing **out)
{
	struct prepared p = {0};
	int rc = prepare(&p, id, o, NULL, started_ns, err);

	if (rc == 0)
		rc = finish(&p, o, capture_take(p.capture, err, &p.tracing->snap), err, out);
	deinit_prepared(&p);
	return rc;
}

void tracing_capture_all(struct tracing_job *jobs, size_t n, const struct tracing_options *o, uint64_t started_ns)
{
	struct prepared *all = calloc(n, sizeof(*all));
	struct capture_job *captures = calloc(n, sizeof(*captures));
	size_t begun = 0;

	for (size_t i = 0; i < n; i++) {
		const struct capture *beside = begun ? captures[0].capture : NULL;

		jobs[i].rc = all && captures ? prepare(&all[i], jobs[i].id, o, beside, started_ns, &jobs[i].err)
					     : err_set(&jobs[i].err, ENOMEM, "out of memory");
		if (jobs[i].rc == 0)
			captures[begun++].capture = all[i].capture;
	}
	if (begun)
		capture_take_all(captures, begun);
	begun = 0;
	for (size_t i = 0; all && captures && i < n; i++) {
		if (jobs[i].rc == 0) {
			const struct capture_job *taken = &captures[begun++];

			all[i].tracing->snap = taken->snap;
			jobs[i].err = taken->err;
			jobs[i].rc = finish(&all[i], o, taken->rc, &jobs[i].err, &jobs[i].tracing);
		}
		deinit_prepared(&all[i]);
	}
	free(captures);
	free(all);
}

int tracing_replay(struct snapshot *snap, const struct tracing_options *o, uint64_t started_ns, struct err *err,
		   struct tracing **out)
{
	_cleanup_(cleanup_tracing) struct tracing *t = calloc(1, sizeof(*t));
	const struct modules_options files = {.ignore_deleted = o->ignore_deleted};
	int rc;

	if (!t) {
		snapshot_destroy(snap);
		return err_set(err, ENOMEM, "out of memory");
	}
	begin(t, started_ns);
	t->snap = snap;
	t->trace.timings.capture_ns = snap->capture.capture_ns;
	t->target = target_open_saved(snap);
	if (!t->target)
		return err_set(err, ENOMEM, "out of memory");
	end_stage(t, &t->trace.timings.setup_ns);
	rc = target_open_files(t->target, &files, err);
	if (rc == 0)
		rc = walk(t, NULL, NULL, o, err);
	if (rc == 0)
		*out = steal_ptr(t);
	return rc;
}

/* Reads on all cores what naming the stacks will need. */
static bool prepare_names(struct symbolizer *sym, const struct trace *trace)
{
	VEC(const struct raw_stack *) stacks = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < trace->threads.len; i++)
		ok = vec_push(&stacks, &trace->threads.data[i].raw);
	ok = ok && symbolizer_prepare(sym, stacks.data, stacks.len);
	vec_deinit(&stacks);
	return ok;
}

/* Names tell whose code was walked through. */
static void doubt(struct trace_thread *t)
{
	const char *why = t->raw.end == STACK_COMPLETE ? made_code_doubt(t->user) : NULL;

	if (!why)
		return;
	t->raw.end = STACK_DOUBTFUL;
	t->raw.end_pc = t->raw.data[t->raw.len - 1].pc;
	snprintf(t->raw.error, sizeof(t->raw.error), "%s", why);
}

static bool name_thread(struct tracing *t, bool kernel, struct trace_thread *thread)
{
	kernel = kernel && thread->thread->nkernel;
	thread->user = symbolizer_name(t->symbolizer, &thread->raw);
	if (kernel)
		thread->kernel = symbolizer_name_kernel(t->symbolizer, thread->thread);
	if (!thread->user || (kernel && !thread->kernel))
		return false;
	doubt(thread);
	return true;
}

static void find_names(void *arg)
{
	struct naming *naming = arg;
	struct tracing *t = naming->tracing;
	bool ok;

	symbolizer_destroy(t->symbolizer); /* of another time */
	t->symbolizer = symbolizer_create(t->target->modules, &t->symbolizing);
	ok = t->symbolizer && prepare_names(t->symbolizer, &t->trace);
	for (size_t i = 0; ok && i < t->trace.threads.len; i++)
		ok = name_thread(t, naming->kernel, &t->trace.threads.data[i]);
	naming->ok = ok;
}

void tracing_find_busy(const struct tracing *t, cpu_set_t *out)
{
	int looks = 0;

	CPU_ZERO(out);
	if (!target_is_live(t->target))
		return;
	for (size_t i = 0; i < t->snap->threads.len && looks < MAX_LOOKS; i++) {
		const struct snap_thread *thread = &t->snap->threads.data[i];
		int cpu = -1;

		if (thread->state == 'R') {
			cpu = task_cpu(&t->target->process, thread->tid);
			looks++;
		}
		if (cpu >= 0 && cpu < CPU_SETSIZE)
			CPU_SET(cpu, out);
	}
}

int tracing_name(struct tracing *t, const struct tracing_names *names, struct err *err, struct trace **out)
{
	struct naming naming = {.tracing = t, .kernel = names->kernel};

	t->symbolizing = (struct symbolizer_options){
		.native = names->native,
		.kernel_addresses = !t->snap->replayed,
		.merge = names->native.bare ? NULL : runtimes_merge, /* it reads what the process wrote */
		.merge_ctx = &t->runtimes,
	};
	t->runtimes.keep = names->raw;
	if (!t->has_busy)
		tracing_find_busy(t, &t->busy);
	background_run(&t->busy, find_names, &naming);
	if (!naming.ok)
		return err_set(err, ENOMEM, "out of memory");
	if (!t->no_waits && !waits_find(&t->trace))
		return err_set(err, ENOMEM, "out of memory");
	if (!names->native.bare)
		variable_names_find(t->target->modules, names->native.demangle, &t->trace);
	t->trace.kernel_symbols_error = symbolizer_kernel_error(t->symbolizer);
	notes_add_all(&t->trace.notes, modules_notes(t->target->modules));
	end_stage(t, &t->trace.timings.symbolize_ns);
	t->trace.timings.total_ns = t->stage_ns - t->started_ns;
	*out = &t->trace;
	return 0;
}
