/* SPDX-License-Identifier: MIT */
#include "doctor/process.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "proc/process.h"
#include "report/lacking.h"
#include "trace/tracing.h"

enum { STACK_BYTES = 8 << 20 };

static const struct finding *find(const struct doctor *doctor, const char *name)
{
	return findings_find(&doctor->diagnosis->findings, name, strlen(name));
}

static bool works(const struct doctor *doctor, const char *name)
{
	const struct finding *finding = find(doctor, name);

	return finding && finding->state == FINDING_WORKS;
}

static bool add_lack(struct verdict *verdict, const char *words)
{
	return words && vec_push(&verdict->lacks, words);
}

/* What keeps each thread from being shown whole: each reason once, with how many threads it holds for. */
static bool add_threads(struct doctor *doctor, const struct trace *trace, struct verdict *verdict)
{
	const size_t first = verdict->lacks.len;
	size_t running = 0, cut = 0;
	const char *why_cut = NULL;
	bool ok = true;

	for (size_t i = 0; ok && i < trace->threads.len; i++) {
		const struct trace_thread *t = &trace->threads.data[i];
		bool is_known = false;

		if (t->thread->status == THREAD_RUNNING) {
			running++;
		} else if (t->thread->why) {
			for (size_t j = first; j < verdict->lacks.len; j++)
				is_known |= strcmp(verdict->lacks.data[j], t->thread->why) == 0;
			ok = is_known || trace_thread_is_complete(t) ||
			     add_lack(verdict, arena_printf(doctor->arena, "%s", t->thread->why));
		} else if (!trace_thread_is_complete(t)) {
			why_cut = cut++ ? why_cut : arena_printf(doctor->arena, "%s", t->raw.error);
		}
	}
	if (ok && running && !works(doctor, "ptrace"))
		ok = add_lack(verdict, arena_printf(doctor->arena, "threads that run (%zu just now) are shown without a stack: %s",
						    running, find(doctor, "ptrace")->why));
	if (ok && works(doctor, "ptrace") && !works(doctor, "window"))
		ok = add_lack(verdict, arena_printf(doctor->arena, "threads that run are stopped for a moment: %s", find(doctor, "window")->why));
	if (ok && cut)
		ok = add_lack(verdict, arena_printf(doctor->arena, "%zu of %zu user stacks end early: %s", cut,
						    trace->threads.len, why_cut ? why_cut : ""));
	return ok;
}

static bool add_runtimes(struct doctor *doctor, const struct snapshot *snap, struct verdict *verdict)
{
	for (size_t i = 0; i < snap->runtimes.len; i++) {
		const struct snap_runtime *runtime = &snap->runtimes.data[i];

		if (runtime->problem &&
		    !add_lack(verdict, arena_printf(doctor->arena, "frames of %s%s%s: %s", runtime->name,
						    runtime->version ? " " : "", runtime->version ? runtime->version : "",
						    runtime->problem)))
			return false;
	}
	return true;
}

static bool add_modules(struct doctor *doctor, const struct trace *trace, struct verdict *verdict)
{
	struct lacking lacking = {0};
	bool ok = lacking_find(&lacking, trace);

	for (size_t i = 0; ok && i < lacking.len; i++) {
		const struct module_info *module = lacking.data[i];

		ok = add_lack(verdict, arena_printf(doctor->arena, "lines of %s: %s%s%s", module->path, module->problem,
						    module->help ? "; " : "", module->help ? module->help : ""));
	}
	lacking_deinit(&lacking);
	return ok;
}

static bool add_trace(struct doctor *doctor, const struct trace *trace, struct verdict *verdict)
{
	const char *no_kernel = trace->snap->capture.kernel_stack_error;

	verdict->rung = arena_printf(doctor->arena, "%s", trace->snap->capture.method);
	return verdict->rung && (!no_kernel || add_lack(verdict, arena_printf(doctor->arena, "%s", no_kernel))) &&
	       (!trace->kernel_symbols_error || add_lack(verdict, arena_printf(doctor->arena, "names of kernel functions: %s",
									       trace->kernel_symbols_error))) &&
	       add_threads(doctor, trace, verdict) && add_runtimes(doctor, trace->snap, verdict) &&
	       add_modules(doctor, trace, verdict);
}

/* A snapshot, but for threads that would have to be held. */
static bool judge_snapshot(struct doctor *doctor, struct verdict *verdict)
{
	_cleanup_(cleanup_tracing) struct tracing *tracing = NULL;
	const struct tracing_options options = {
		.capture = {.stop = STOP_NONE, .kernel_stacks = true, .no_waits = true, .stack_size = STACK_BYTES},
	};
	const struct tracing_names names = {.native.symbols.cache = doctor->cache, .kernel = true};
	struct process_id id = {.pid = doctor->diagnosis->pid};
	struct err err = {0};
	struct trace *trace;

	if (tracing_capture(id, &options, monotonic_ns(), &err, &tracing) < 0 ||
	    tracing_name(tracing, &names, &err, &trace) < 0)
		return add_lack(verdict, arena_printf(doctor->arena, "%s", err.msg));
	return add_trace(doctor, trace, verdict);
}

static bool judge_offcpu(struct doctor *doctor, bool readable, struct verdict *verdict)
{
	static const struct {
		const char *check, *rung;
	} rungs[] = {
		{"offcpu_sched_exit", "sched_exit"},
		{"offcpu_kprobe", "kprobe"},
		{"offcpu_switch", "switch"},
	};

	for (size_t i = 0; !verdict->rung && i < sizeof(rungs) / sizeof(rungs[0]); i++)
		if (works(doctor, rungs[i].check))
			verdict->rung = rungs[i].rung;
	if (!readable && !add_lack(verdict, "user stacks: its memory map cannot be read"))
		return false;
	if (verdict->rung)
		return true;
	verdict->rung = "proc";
	return add_lack(verdict, arena_printf(doctor->arena, "waits are estimated: %s", find(doctor, "offcpu_switch")->why));
}

static const char *find_comm(struct doctor *doctor)
{
	struct process process;
	struct process_info info;
	const char *comm = NULL;

	if (process_open(doctor->diagnosis->pid, NULL, &process) < 0)
		return NULL;
	if (process_info(&process, &info) == 0)
		comm = arena_printf(doctor->arena, "%s", info.comm);
	process_close(&process);
	return comm;
}

int doctor_examine(struct doctor *doctor, struct err *err)
{
	struct diagnosis *diagnosis = doctor->diagnosis;
	struct verdict snapshot = {.command = "snapshot"}, offcpu = {.command = "offcpu"};

	diagnosis->comm = find_comm(doctor);
	if (!diagnosis->comm)
		return err_set(err, ESRCH, "process %d does not exist", (int)diagnosis->pid);
	if (!judge_snapshot(doctor, &snapshot) || !judge_offcpu(doctor, snapshot.rung, &offcpu) ||
	    !vec_push(&diagnosis->verdicts, snapshot) || !vec_push(&diagnosis->verdicts, offcpu))
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}
