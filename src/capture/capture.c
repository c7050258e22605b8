/* SPDX-License-Identifier: MIT */
#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/debug.h"
#include "capture/besides.h"
#include "capture/file_ahead.h"
#include "capture/take.h"
#include "kernel/window_look.h"
#include "proc/cgroup.h"
#include "proc/clocks.h"
#include "proc/task.h"
#include "target/ask.h"
#include "target/outsiders.h"
#include "target/sharers.h"

enum { MAX_BEGINNINGS = 4 }; /* after an exec, and once when threads moved that had slept for long */

static int create_observer(const struct capture *c, struct err *err, struct observer **out)
{
	const struct process *process = &c->target->process;
	const struct capture *beside = c->options.beside;

	if (beside && !beside->observer_note[0])
		return observer_beside_create(beside->observer, process, err, out);
	return (c->options.source == SOURCE_LIBBPF ? observer_libbpf_create : observer_bpf_create)(process, err, out);
}

static int choose_observer(struct capture *c, struct err *err)
{
	struct err why = {0};
	int rc;

	if (c->options.source != SOURCE_PROC) {
		rc = process_check_numbers(&why);
		if (rc == 0)
			rc = create_observer(c, &why, &c->observer);
		debug_say(rc, "looking at threads by BPF%s%s", why.msg[0] ? ": " : "", why.msg);
		if (rc == 0)
			return 0;
		if (c->options.source != SOURCE_AUTO)
			return err_set(err, -rc, "%s", why.msg);
		snprintf(c->observer_note, sizeof(c->observer_note),
			 "threads are read through /proc, which shows only pc and sp: %s", why.msg);
	}
	rc = observer_proc_create(&c->target->process, err, &c->observer);
	debug_say(rc, "looking at threads by /proc");
	return rc;
}

/* A number that means another process must not stop that one. */
static int choose_stop(struct capture *c, struct err *err)
{
	if (c->options.stop == STOP_NONE || process_check_numbers(NULL) == 0)
		return 0;
	if (c->options.stop == STOP_ALL)
		return process_check_numbers(err);
	c->unstoppable = true;
	c->options.stop = STOP_NONE;
	return 0;
}

int capture_open(struct target *target, const struct capture_options *options, struct err *err, struct capture **out)
{
	struct capture *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->options = *options;
	c->target = target;
	target->memory.prefer_proc_mem = options->proc_mem;
	rc = choose_stop(c, err);
	if (rc == 0)
		rc = choose_observer(c, err);
	c->options.beside = NULL; /* it may go before us */
	if (rc < 0) {
		capture_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	if (c->observer)
		c->observer->destroy(c->observer);
	window_look_destroy(c->look);
	vec_deinit(&c->seen);
	u64map_deinit(&c->seen_index);
	free(c);
}

/* What threads wait for is found as all else that was read of them is. */
static int keep_waited(struct snapshot *snap, struct err *err)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (t->waited.len && !vec_push(&snap->copies, (struct snap_copy){.tid = t->tid, .copy = t->waited}))
			return err_set(err, ENOMEM, "out of memory");
		t->waited = (struct mem_copy){0};
	}
	return 0;
}

/* Removes the threads that ended meanwhile, and counts what was done. */
static void finish(struct take *take)
{
	struct snapshot *snap = take->snap;
	struct capture_info *info = &snap->capture;
	size_t kept = 0;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (take->work.data[i] == WORK_DROP)
			continue;
		info->stopped_threads += t->pause_ns > 0;
		info->retaken_threads += t->retakes > 0;
		if (!info->inconsistent_why && t->capture == CAPTURE_MOVED)
			info->inconsistent_why = "a thread ran while it was read";
		if (!info->inconsistent_why && t->status != THREAD_CAPTURED && t->status != THREAD_ZOMBIE &&
		    t->status != THREAD_KERNEL)
			info->inconsistent_why = "not every thread could be captured";
		snap->threads.data[kept++] = *t;
	}
	snap->threads.len = kept;
	info->consistent = !info->inconsistent_why;
	if (!info->consistent)
		info->instant_ns = 0;
}

/* Only of a process in another pid namespace: a file has to be read for each. */
static void find_inner_tids(const struct capture *c, struct snapshot *snap)
{
	struct task_status status;

	for (size_t i = 0; snap->inner_pid && i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		t->inner_tid = t->tid == snap->pid ? snap->inner_pid
			       : task_status(&c->target->process, t->tid, &status) == 0 ? status.ns_pid : 0;
	}
}

/* Emulators of other processors: what they run is in their stacks only as code that they made. */
static bool is_emulator(const char *exe)
{
	const char *name = exe ? strrchr(exe, '/') : NULL;

	return name && ((strncmp(name, "/qemu-", 6) == 0 && strncmp(name, "/qemu-system-", 13) != 0) || strstr(name, "-binfmt-"));
}

static void read_clocks(const struct capture *c, struct snapshot *snap)
{
	struct clock_offsets offsets;

	snap->taken_at_monotonic_ns = (int64_t)monotonic_ns();
	snap->monotonic_ahead_ns = snap->boottime_ahead_ns = CLOCK_UNKNOWN;
	if (!clock_offsets_of(&c->target->process, &offsets))
		return;
	snap->monotonic_ahead_ns = offsets.monotonic_ns;
	snap->boottime_ahead_ns = (int64_t)(clock_ns(CLOCK_BOOTTIME) - monotonic_ns()) + offsets.boottime_ns;
}

/* The process as a whole: names, map, vDSO. */
static int describe(struct capture *c, struct snapshot *snap, struct err *err)
{
	struct process_info info;
	int rc = process_info(&c->target->process, &info);

	if (rc < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)c->target->process.pid);
	target_look(c->target);
	target_set_snapshot(c->target, snap);
	snap->comm = arena_intern(snap->arena, info.comm);
	snap->exe = process_exe(&c->target->process, snap->arena);
	snap->inner_pid = process_inner_pid(&c->target->process);
	cgroup_read(&c->target->process, snap->arena, &snap->container);
	snap->kernel_thread = info.kernel_thread;
	snap->partial = c->options.tids;
	snap->taken_at_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	read_clocks(c, snap);
	snap->capture.method = c->options.stop == STOP_ALL ? "ptrace" : c->observer->name;
	snap->capture.stop_mode = c->options.stop == STOP_ALL ? "all" : c->options.stop == STOP_NONE ? "none" : c->options.stop == STOP_HOLD ? "hold" : "auto";
	if (c->observer_note[0] && c->options.stop != STOP_ALL)
		notes_add(&snap->notes, "%s", c->observer_note);
	if (c->observer->slow_why)
		notes_add(&snap->notes, "BPF took longer to set up than it should: %s", c->observer->slow_why);
	if (is_emulator(snap->exe))
		notes_add(&snap->notes, "it is an emulator: the stacks are its own, not those of the program that it runs");
	if (info.kernel_thread)
		return 0;
	rc = process_maps(&c->target->process, snap->arena, err, &snap->maps);
	return rc < 0 ? rc : ask_process(c->target, snap, &ask_vdso, NULL, err);
}

/* The first pass comes before the memory map: an exec after it is noticed by the next pass. */
static int begin(struct take *take)
{
	struct capture *c = take->capture;
	int rc = take_observe(take, 0, false);

	if (rc == 0)
		rc = describe(c, take->snap, take->err);
	if (rc == 0)
		rc = take_choose_arch(take);
	if (rc == 0)
		rc = take_begin_reading(take);
	if (rc == 0)
		rc = take_store_pass(take);
	if (rc < 0)
		return rc;
	if (!take->snap->threads.len)
		return c->options.tids ? err_set(take->err, ESRCH, "process %d has no thread %d", (int)c->target->process.pid,
						 (int)c->options.tids[0])
				       : err_set(take->err, ESRCH, "process %d has ended", (int)c->target->process.pid);
	return 0;
}

static void deinit(struct take *take)
{
	vec_deinit(&take->work);
	vec_deinit(&take->unread);
	vec_deinit(&take->sps);
	u64map_deinit(&take->index);
	if (take->snap)
		target_set_snapshot(take->capture->target, NULL);
	snapshot_destroy(take->snap);
}

static void find_owners_elsewhere(const struct process *process, struct snapshot *snap)
{
	struct sharers sharers;

	sharers_find(process, snap, &sharers);
	outsiders_find(process, &sharers, snap);
}

static void end(struct take *take, uint64_t start, struct snapshot **out)
{
	if (take->rc == 0)
		take->rc = keep_waited(take->snap, take->err);
	if (take->rc == 0) {
		finish(take);
		if (!take->between)
			take_kernel_text(take->snap);
		find_inner_tids(take->capture, take->snap);
		find_owners_elsewhere(&take->capture->target->process, take->snap);
		take->snap->capture.capture_ns = monotonic_ns() - start;
		*out = steal_ptr(take->snap);
	}
	deinit(take);
}

static struct take start_take(struct capture *c, struct window_look **look, struct err *err)
{
	struct take take = {.capture = c, .look = look, .err = err, .snap = snapshot_create(c->target->process.pid, arch_host())};

	take.rc = take.snap ? begin(&take) : err_set(err, ENOMEM, "out of memory");
	return take;
}

static int take_once(struct capture *c, struct err *err, bool *gathered, struct snapshot **out)
{
	uint64_t start = monotonic_ns();
	struct take take = start_take(c, &c->look, err), *all = &take;

	take.may_gather = c->options.stop != STOP_ALL && !c->options.no_waits;
	if (take.rc == 0 && c->options.stop == STOP_ALL)
		take.rc = take_stopped(&take);
	else if (take.rc == 0)
		take_passive(&all, 1);
	*gathered = take.between;
	end(&take, start, out);
	return take.rc;
}

static void drop(struct capture *c, struct snapshot **snap)
{
	target_set_snapshot(c->target, NULL);
	snapshot_destroy(steal_ptr(*snap));
}

/* A pass over all threads costs less than one for each, where there are many. */
static int look_besides(struct besides *all, size_t n, struct err *err)
{
	bool any = false;
	int rc = besides_gather(all, n, err, &any);

	for (size_t i = 0; any && i < n; i++)
		if (take_look(all[i].capture) == 0)
			besides_judge(all[i].capture, all[i].snap);
	return rc;
}

/* What was captured is kept only with that. */
static int take_with_besides(struct capture *c, struct err *err, struct snapshot **out)
{
	bool gathered = false;
	int rc = take_once(c, err, &gathered, out);

	if (rc == 0 && !gathered && !c->options.no_waits)
		rc = look_besides(&(struct besides){.capture = c, .snap = *out}, 1, err);
	if (rc < 0 && *out)
		drop(c, out);
	file_ahead_destroy(steal_ptr(c->ahead));
	return rc;
}

int capture_take(struct capture *c, struct err *err, struct snapshot **out)
{
	int rc = -EAGAIN;

	*out = NULL;
	c->restless = false;
	for (int tries = 0; rc == -EAGAIN && tries < MAX_BEGINNINGS; tries++)
		rc = take_with_besides(c, err, out);
	return rc == -EAGAIN ? err_set(err, EAGAIN, "process %d executes new programs faster than it can be read", (int)c->target->process.pid) : rc;
}

/* Those that have begun; what they share is the first one's. */
static void take_together(struct take *takes, size_t n)
{
	VEC(struct take *) begun = {0};

	for (size_t i = 0; i < n; i++)
		if (takes[i].rc == 0 && !vec_push(&begun, &takes[i]))
			takes[i].rc = take_out_of_memory(&takes[i]);
	if (begun.len)
		take_passive(begun.data, begun.len);
	vec_deinit(&begun);
}

/* Who was captured at the same instant. */
static void count_companions(struct capture_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; jobs[i].rc == 0 && jobs[i].snap->capture.instant_ns && k < n; k++)
			jobs[i].snap->capture.companions += k != i && jobs[k].rc == 0 && jobs[k].snap->capture.instant_ns == jobs[i].snap->capture.instant_ns;
}

/* For all that were taken together. */
static void look_besides_all(struct capture_job *jobs, size_t n)
{
	struct besides *all = calloc(n, sizeof(*all));
	struct err err = {0};
	size_t taken = 0;
	int rc = all ? 0 : err_set(&err, ENOMEM, "out of memory");

	for (size_t i = 0; all && i < n; i++)
		if (jobs[i].rc == 0 && !jobs[i].capture->options.no_waits)
			all[taken++] = (struct besides){.capture = jobs[i].capture, .snap = jobs[i].snap};
	if (taken)
		rc = look_besides(all, taken, &err);
	for (size_t i = 0; rc < 0 && i < n; i++)
		if (jobs[i].rc == 0) {
			drop(jobs[i].capture, &jobs[i].snap);
			jobs[i].rc = rc;
			jobs[i].err = err;
		}
	free(all);
}

static void take_several(struct capture_job *jobs, size_t n)
{
	struct take *takes = calloc(n, sizeof(*takes));
	uint64_t start = monotonic_ns();

	for (size_t i = 0; takes && i < n; i++)
		takes[i] = start_take(jobs[i].capture, &jobs[0].capture->look, &jobs[i].err);
	if (takes)
		take_together(takes, n);
	for (size_t i = 0; i < n; i++) {
		if (takes)
			end(&takes[i], start, &jobs[i].snap);
		jobs[i].rc = takes ? takes[i].rc : -EAGAIN;
	}
	look_besides_all(jobs, n);
	for (size_t i = 0; i < n; i++)
		if (jobs[i].rc == -EAGAIN) /* it has executed another program, and comes later than the others */
			jobs[i].rc = capture_take(jobs[i].capture, &jobs[i].err, &jobs[i].snap);
	count_companions(jobs, n);
	free(takes);
}

void capture_take_all(struct capture_job *jobs, size_t n)
{
	if (n > 1)
		take_several(jobs, n);
	else if (n)
		jobs[0].rc = capture_take(jobs[0].capture, &jobs[0].err, &jobs[0].snap);
}

bool capture_unmoved(const struct capture *c, const struct snap_thread *t)
{
	const struct observation *o = take_find_observed(c, t->tid);

	return (t->capture == CAPTURE_ASLEEP || t->capture == CAPTURE_QUIET) && o && take_unmoved(o, t);
}
