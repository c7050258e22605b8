/* SPDX-License-Identifier: MIT */
/* Whole stacks of the patient, kernel and user, each way that the commands can take. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "doctor/check.h"
#include "offcpu/record/recording.h"
#include "offcpu/sample/sampler.h"
#include "trace/tracing.h"

enum { STACK_BYTES = 1 << 20, PATIENCE_MS = 5000, WAITS = 2, LOOKS = 3, WINDOWS = 3, STOP_MS = 1000 };

/* Whether it is a stack of the function that waits. */
static bool is_true(const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->len; i++)
		if (patient_waits_at(stack->data[i].address))
			return true;
	return false;
}

static int judge(const struct stack *user, const char *user_error, const struct stack *kernel, const char *kernel_error,
		 struct err *err)
{
	if (user_error)
		return err_set(err, ENODATA, "the user stack is not whole: %s", user_error);
	if (!is_true(user))
		return err_set(err, ENODATA, "the user stack is not that of the function that waits");
	if (kernel && kernel->len)
		return 0;
	err_set(err, EPERM, "user stacks, but no kernel stacks%s%s", kernel_error ? ": " : "", kernel_error ? kernel_error : "");
	return CHECK_PARTLY;
}

static int judge_trace(const struct trace *trace, struct err *err)
{
	const struct trace_thread *thread = trace->threads.len ? &trace->threads.data[0] : NULL;

	if (!thread)
		return err_set(err, ESRCH, "the process has ended");
	if (thread->thread->why)
		return err_set(err, ENODATA, "%s", thread->thread->why);
	return judge(thread->user, trace_thread_is_complete(thread) ? NULL : thread->raw.error, thread->kernel,
		     trace->snap->capture.kernel_stack_error, err);
}

static int try_snapshot(struct doctor *doctor, enum source_choice source, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	const struct tracing_options options = {
		.capture = {.source = source, .stop = STOP_NONE, .kernel_stacks = true, .no_waits = true, .stack_size = STACK_BYTES},
		.no_runtimes = true,
	};
	const struct tracing_names names = {.native.symbols.cache = doctor->cache, .kernel = true};
	struct trace *trace;
	int rc = tracing_capture((struct process_id){.pid = doctor->patient.pid}, &options, monotonic_ns(), err, &tracing);

	if (rc == 0)
		rc = tracing_name(tracing, &names, err, &trace);
	return rc < 0 ? rc : judge_trace(trace, err);
}

static int try_snapshot_bpf(struct doctor *doctor, const char **how, struct err *err)
{
	return try_snapshot(doctor, SOURCE_BPF, err);
}

static int try_snapshot_libbpf(struct doctor *doctor, const char **how, struct err *err)
{
	return try_snapshot(doctor, SOURCE_LIBBPF, err);
}

static int try_snapshot_proc(struct doctor *doctor, const char **how, struct err *err)
{
	return try_snapshot(doctor, SOURCE_PROC, err);
}

/* Why a snapshot had no window, as it says itself. */
static int explain_no_window(const struct snapshot *snap, struct err *err)
{
	static const char held[] = "threads that run are held by ptrace: ";
	const bool by_bpf = strcmp(snap->capture.method, "bpf") == 0;

	for (size_t i = 0; i < snap->notes.len; i++) {
		const char *note = snap->notes.data[i];

		if (!by_bpf || strncmp(note, held, strlen(held)) == 0)
			return err_set(err, EPERM, "%s", by_bpf ? note + strlen(held) : note);
	}
	return err_set(err, EAGAIN, "the thread ran on, or was not seen, in each of %u", snap->capture.windows);
}

static int look_through_window(pid_t pid, const char **how, struct arena *arena, struct err *err)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	const struct tracing_options options = {
		.capture = {.stop = STOP_AUTO, .no_waits = true, .stack_size = STACK_BYTES, .stop_timeout_ms = STOP_MS},
		.no_runtimes = true,
	};
	const struct trace_thread *thread;
	const struct snapshot *snap;
	int rc = tracing_capture((struct process_id){.pid = pid}, &options, monotonic_ns(), err, &tracing);

	if (rc < 0)
		return rc;
	snap = tracing_snapshot(tracing);
	if (!tracing_walked(tracing)->threads.len)
		return err_set(err, ESRCH, "the process has ended");
	thread = &tracing_walked(tracing)->threads.data[0];
	if (thread->thread->capture != CAPTURE_QUIET)
		return explain_no_window(snap, err);
	if (!thread->raw.len || !patient_waits_at(thread->raw.data[0].pc))
		return err_set(err, ENODATA, "the stack is not that of the function that runs");
	*how = arena_printf(arena, "%.0f µs on %u CPU%s", (double)snap->capture.window_ns / 1e3, snap->capture.cpus_taken,
			    snap->capture.cpus_taken == 1 ? "" : "s");
	return 0;
}

static bool works(const struct doctor *doctor, const char *name)
{
	const struct finding *finding = findings_find(&doctor->diagnosis->findings, name, strlen(name));

	return finding && finding->state == FINDING_WORKS;
}

static bool has_bpf(const struct doctor *doctor)
{
	return works(doctor, "snapshot_bpf") || works(doctor, "snapshot_libbpf");
}

/* A window of a thread that runs. A slow or busy machine may miss it many times: that is no reason to say that there are none. */
static int try_window(struct doctor *doctor, const char **how, struct err *err)
{
	const uint64_t until = monotonic_ns() + (uint64_t)PATIENCE_MS * 1000000;
	const int tries = works(doctor, "realtime") && has_bpf(doctor) ? WINDOWS : 1; /* whatever the reason */
	struct patient runner;
	int rc = patient_start_running(&runner, err);

	if (rc < 0)
		return rc;
	rc = -EAGAIN;
	for (int i = 0; rc < 0 && (rc == -EAGAIN || i < tries) && (i == 0 || monotonic_ns() < until); i++)
		rc = look_through_window(runner.pid, how, doctor->arena, err);
	patient_end(&runner);
	return rc;
}

/* It takes both. */
static const char *remedy_window(struct doctor *doctor, int code)
{
	const bool by_bpf = has_bpf(doctor), realtime = works(doctor, "realtime");

	if (by_bpf && realtime)
		return code == EPERM ? "use Linux 5.17 or newer" : NULL;
	if (by_bpf)
		return rights_remedy(&doctor->rights, REFUSED_REALTIME, NULL, doctor->arena);
	return rights_remedy(&doctor->rights, realtime ? REFUSED_BPF : REFUSED_WINDOW, "bpf", doctor->arena);
}

static struct watch_options watch_options(const struct doctor *doctor)
{
	return (struct watch_options){
		.pids = &doctor->patient.pid,
		.npids = 1,
		.by_thread = true,
		.kernel_stacks = true,
		.user_stacks = true,
		.names.symbols.cache = doctor->cache,
		.filter = {.min_ns = 1, .max_ns = UINT64_MAX, .sleeping = true, .uninterruptible = true}, /* see try_sched_exit() */
	};
}

/* Waits that are over are those that the kernel told of: those that are not are looked at as in a snapshot. */
static int judge_profile(const struct offcpu_profile *profile, struct err *err)
{
	int rc = err_set(err, ENODATA, "no wait was seen");

	for (size_t i = 0; rc < 0 && i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];

		if (row->state == 'S' && (profile->estimate || row->sum.unfinished < row->sum.count))
			rc = judge(row->user, row->user_error, row->kernel, row->kernel_error, err);
	}
	return rc;
}

static bool has_seen_waits(struct watch *watch)
{
	return watch->ops->progress(watch).waits >= WAITS;
}

static bool has_looked(struct watch *sampler)
{
	return sampler_looks(sampler) >= LOOKS;
}

/* Takes over the watch. */
static int finish(struct watch *watch, bool (*is_enough)(struct watch *watch), struct err *err)
{
	const uint64_t until = monotonic_ns() + (uint64_t)PATIENCE_MS * 1000000;
	const struct timespec nap = {.tv_nsec = 2000000};
	struct offcpu_profile profile = {0};
	int rc;

	while (!is_enough(watch) && monotonic_ns() < until)
		nanosleep(&nap, NULL);
	watch->ops->stop(watch);
	rc = watch->ops->finish(watch, err, &profile);
	if (rc == 0)
		rc = judge_profile(&profile, err);
	offcpu_profile_deinit(&profile);
	watch_destroy(watch);
	return rc;
}

static int try_recording(struct doctor *doctor, enum offcpu_rung rung, struct err *err)
{
	const struct recording_options options = {.watch = watch_options(doctor), .rung = rung};
	struct recording *recording;
	int rc = recording_start(&options, err, &recording);

	return rc < 0 ? rc : finish(recording_watch(recording), has_seen_waits, err);
}

/*
 * Where every wait counts, stacks are taken when a thread leaves its CPU, and not when it is back, unless that was not possible. Either
 * takes the kernel a tenth of a second to check: so here waits of no time do not count, and try_switch() tries the other.
 */
static int try_sched_exit(struct doctor *doctor, const char **how, struct err *err)
{
	return try_recording(doctor, OFFCPU_RUNG_SCHED_EXIT, err);
}

static int try_kprobe(struct doctor *doctor, const char **how, struct err *err)
{
	return try_recording(doctor, OFFCPU_RUNG_KPROBE, err);
}

static int try_switch(struct doctor *doctor, const char **how, struct err *err)
{
	return try_recording(doctor, OFFCPU_RUNG_SWITCH, err);
}

static int try_sampler(struct doctor *doctor, const char **how, struct err *err)
{
	const struct sampler_options options = {.watch = watch_options(doctor)};
	struct watch *watch;
	int rc = sampler_start(&options, err, &watch);

	return rc < 0 ? rc : finish(watch, has_looked, err);
}

/* A setting may refuse only what it is put by. */
static const char *remedy_kprobe(struct doctor *doctor, int code)
{
	const enum refused what = remedy_is_forbidden(REFUSED_KPROBE, &doctor->rights.standing) ? REFUSED_KPROBE : REFUSED_STACKS;

	return code == EPERM || code == EACCES ? rights_remedy(&doctor->rights, what, "bpf", doctor->arena) : NULL;
}

static const char snapshot[] = "stakeout PID, on a program of its own";
static const char offcpu[] = "stakeout offcpu, on the same program";

static const struct check list[] = {
	{
		.group = snapshot,
		.name = "snapshot_bpf",
		.about = "by BPF: user and kernel stacks of sleeping threads, nobody is stopped",
		.costs = "running threads are found by guessing from /proc; without root there are no kernel stacks",
		.attempt = try_snapshot_bpf,
		.refused = REFUSED_STACKS,
		.syscall = "bpf",
		.better = "snapshot_libbpf",
	},
	{
		.group = snapshot,
		.name = "snapshot_libbpf",
		.about = "the same, relocated by libbpf, for older kernels",
		.costs = "nothing where the line above works",
		.attempt = try_snapshot_libbpf,
		.refused = REFUSED_STACKS,
		.syscall = "bpf",
		.better = "snapshot_bpf",
	},
	{
		.group = snapshot,
		.name = "snapshot_proc",
		.about = "by /proc",
		.costs = "nothing where BPF works",
		.attempt = try_snapshot_proc,
		.refused = REFUSED_PROC_STACKS,
		.better = "snapshot_bpf,snapshot_libbpf",
	},
	{
		.group = snapshot,
		.name = "window",
		.about = "threads that run, while their CPUs are taken for microseconds: nobody is stopped",
		.costs = "running threads are stopped by ptrace, on a busy machine for milliseconds instead of microseconds",
		.attempt = try_window,
		.remedy = remedy_window,
	},
	{
		.group = offcpu,
		.name = "offcpu_sched_exit",
		.about = "by BPF at the scheduler's own tracepoint (Linux 6.18)",
		.costs = "nothing where a kprobe works",
		.attempt = try_sched_exit,
		.beside = true,
		.refused = REFUSED_STACKS,
		.syscall = "bpf",
		.better = "offcpu_kprobe",
	},
	{
		.group = offcpu,
		.name = "offcpu_kprobe",
		.about = "by BPF at a kprobe",
		.costs = "stacks are taken at every switch, which takes three times as long",
		.attempt = try_kprobe,
		.beside = true,
		.remedy = remedy_kprobe,
		.better = "offcpu_sched_exit",
	},
	{
		.group = offcpu,
		.name = "offcpu_switch",
		.about = "by BPF at every switch",
		.costs = "waits are estimated from /proc: short ones are missed, and wakers are not known",
		.attempt = try_switch,
		.beside = true,
		.refused = REFUSED_STACKS,
		.syscall = "bpf",
		.better = "offcpu_sched_exit,offcpu_kprobe",
	},
	{
		.group = offcpu,
		.name = "offcpu_proc",
		.about = "by looking at /proc again and again",
		.costs = "nothing where BPF works",
		.attempt = try_sampler,
		.beside = true,
		.refused = REFUSED_PROC_STACKS,
		.better = "offcpu_sched_exit,offcpu_kprobe,offcpu_switch",
	},
};

const struct checks rung_checks = {list, sizeof(list) / sizeof(list[0])};
