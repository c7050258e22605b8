/* SPDX-License-Identifier: MIT */
/* Threads that are asleep: read without being stopped, and proved to have slept. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "capture/altstack.h"
#include "capture/take.h"
#include "capture/waited.h"
#include "privilege/remedy.h"
#include "proc/task.h"

enum {
	MAX_ROUNDS = 3, /* over all threads, towards one instant; more where windows are tried (hasty.c) */
	MAX_TRIES = 2,	/* then, for those that moved in every round, each towards an instant of its own */
	MAX_ALONE = 256, /* then so many of them one by one, */
	MAX_TRIES_ALONE = 8,
	SOME_TIME_NS = 300 * 1000, /* that a round takes beside its passes */
	LONGER = 16, /* in each round, who slept for so many times as long is read in the window, too */
};

/* Past so many bytes in all, only so much of each stack is copied. */
static const uint64_t copy_budget = UINT64_C(256) << 20;
static const uint64_t copy_part = 256 << 10;

static bool store_kernel_stack(struct snapshot *snap, const struct observation *o, struct snap_thread *t)
{
	size_t size = o->nkernel * sizeof(uint64_t);
	char bpf[REMEDY_SIZE], file[REMEDY_SIZE];

	_Static_assert(sizeof(uint64_t) == sizeof(char *), "addresses and texts take the same room");
	t->nkernel = 0;
	t->kernel_pcs = NULL;
	t->kernel_text = NULL;
	if ((o->kernel_error == -EACCES || o->kernel_error == -EPERM) && !snap->capture.kernel_stack_error)
		snap->capture.kernel_stack_error = arena_printf(
			snap->arena, "kernel stacks take BPF: %s; or /proc/PID/task/TID/stack: %s",
			remedy(REFUSED_BPF, bpf), remedy(REFUSED_KERNEL_STACK, file));
	if (!o->nkernel)
		return true;
	if (o->kernel_pcs && (t->kernel_pcs = arena_alloc(snap->arena, size)))
		memcpy(t->kernel_pcs, o->kernel_pcs, size);
	else if (o->kernel_text && (t->kernel_text = arena_alloc(snap->arena, size)))
		memcpy(t->kernel_text, o->kernel_text, size);
	else
		return false;
	t->nkernel = o->nkernel;
	return true;
}

/* Writes what a pass saw into the snapshot's thread. False when memory is exhausted. */
static bool store_observed(struct take *take, const struct observation *o, struct snap_thread *t)
{
	struct task_status status;

	memcpy(t->name, o->name, sizeof(t->name));
	t->state = o->state;
	t->nvcsw = o->nvcsw;
	t->nivcsw = o->nivcsw;
	t->runs = o->runs;
	t->has_runs = o->has_runs;
	t->start = o->start;
	t->off_cpu_ns = o->off_cpu_ns;
	t->cpu_ns = o->cpu_ns;
	t->syscall = o->syscall;
	t->regs = o->regs;
	t->altstack = o->altstack;
	t->tid_address = o->tid_address;
	t->waited = (struct mem_copy){0};
	t->still = STILL_NEVER;
	t->read_in = take->passes;
	t->woken = false;
	t->status = THREAD_CAPTURED;
	t->why = NULL;
	t->facts = o->facts;
	t->facts.ahead.comm = o->facts.ahead.comm ? arena_intern(take->snap->arena, o->facts.ahead.comm) : NULL;
	if (o->state == 't' && task_status(&take->capture->target->process, o->tid, &status) == 0)
		t->tracer = status.tracer;
	return store_kernel_stack(take->snap, o, t);
}

static void refuse_registers(struct snapshot *snap, struct snap_thread *t)
{
	char help[REMEDY_SIZE], why[REMEDY_SIZE + 80];

	snprintf(why, sizeof(why), "its registers cannot be read: /proc/PID/task/TID/syscall is refused: %s",
		 remedy(REFUSED_PTRACE, help));
	take_set_status(snap, t, THREAD_NOT_PERMITTED, why);
}

/* True for a thread of which nothing more can be taken; says why. */
static bool settle(struct take *take, const struct observation *o, struct snap_thread *t)
{
	if (state_is_dead(o->state))
		take_set_status(take->snap, t, THREAD_ZOMBIE, "it has ended and waits to be reaped");
	else if (take->snap->kernel_thread)
		take_set_status(take->snap, t, THREAD_KERNEL, "a kernel thread has no user stack");
	else if (o->kernel_worker)
		take_set_status(take->snap, t, THREAD_KERNEL, "it runs for the kernel (io_uring) and has no user stack");
	else if (o->regs_error)
		refuse_registers(take->snap, t);
	else
		return false;
	return true;
}

/* Takes over the details of the last full pass for every thread that is still to be taken, and for new ones. */
int take_store_pass(struct take *take)
{
	struct capture *c = take->capture;

	for (size_t i = 0; i < c->seen.len; i++) {
		const struct observation *o = &c->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);
		struct snap_thread *t;
		size_t at;

		if (!take_wants(c, o->tid))
			continue;
		if (slot)
			at = (size_t)*slot;
		else if (take_add_thread(take, o->tid, &at) < 0)
			return -ENOMEM;
		if (take->work.data[at] == WORK_DROP)
			take->work.data[at] = WORK_TAKE; /* a tid that is used again */
		if (take->work.data[at] != WORK_TAKE)
			continue;
		t = &take->snap->threads.data[at];
		if (!store_observed(take, o, t))
			return take_out_of_memory(take);
		if (settle(take, o, t))
			take->work.data[at] = WORK_SETTLED;
		else if (o->state == 'R' && t->retakes && c->options.stop != STOP_NONE)
			t->regs.valid = 0; /* it waits for a CPU and gets one again and again: to be held, as if it ran */
	}
	return 0;
}

/* Threads, by position in the snapshot, that wait for the same: it is read for one of them. */
struct shared_copy {
	size_t of, reader;
};

struct copies {
	VEC(struct mem_copy *) wanted; /* each with start and len, to be given data */
	uint64_t total;
	struct u64map readers; /* by the address of what they wait for */
	VEC(struct shared_copy) shared;
};

static bool want_copy(struct copies *copies, struct mem_copy *copy)
{
	copies->total += (copy->len + 15) & ~UINT64_C(15);
	return vec_push(&copies->wanted, copy);
}

/* What this one waits for: read for it, or for another one before it. */
static bool want_waited(struct take *take, struct copies *copies, size_t at)
{
	struct snap_thread *threads = take->snap->threads.data;
	struct mem_copy *waited = &threads[at].waited;
	bool created;
	uint64_t *slot = waited->len ? u64map_put(&copies->readers, waited->start, &created) : NULL;

	if (!slot)
		return !waited->len;
	if (created)
		*slot = at;
	else if (threads[*slot].waited.len == waited->len)
		return vec_push(&copies->shared, ((struct shared_copy){.of = at, .reader = (size_t)*slot}));
	return want_copy(copies, waited);
}

static void share(struct take *take, const struct copies *copies)
{
	for (size_t i = 0; i < copies->shared.len; i++)
		take->snap->threads.data[copies->shared.data[i].of].waited = take->snap->threads.data[copies->shared.data[i].reader].waited;
}

/* The stacks of all threads to be taken that are asleep. */
static int want_stacks(struct take *take, struct copies *copies)
{
	struct snapshot *snap = take->snap;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (take->work.data[i] != WORK_TAKE || !take_has_sp(take, t))
			continue;
		take->work.data[i] = WORK_ASLEEP;
		take->unread.data[i] = true;
		t->capture = CAPTURE_ASLEEP;
		t->stack = take_stack_extent(take, t, t->regs.v[snap->arch->user_sp]);
		t->interrupted = (struct mem_copy){0};
		if (t->state != 'R' && !take->capture->options.no_waits)
			t->waited = waited_memory(&snap->maps, snapshot_arch_of(snap, t), &t->syscall);
		if (waited_is_copied(&t->waited, &t->stack))
			t->waited.len = 0;
		if (!want_copy(copies, &t->stack) || !want_waited(take, copies, i))
			return take_out_of_memory(take);
	}
	if (copies->total <= copy_budget)
		return 0;
	copies->total = 0;
	for (size_t i = 0; i < copies->wanted.len; i++) {
		struct mem_copy *copy = copies->wanted.data[i];

		if (copy->len > copy_part)
			copy->len = copy_part;
		copies->total += (copy->len + 15) & ~UINT64_C(15);
	}
	return 0;
}

/* The ordinary stacks of those whose signal handler runs on another. */
static int want_interrupted(struct take *take, struct copies *copies)
{
	struct snapshot *snap = take->snap;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (take->work.data[i] == WORK_ASLEEP && t->stack.len && !t->interrupted.len &&
		    altstack_interrupted(snap->arch, &snap->maps, &t->altstack, &t->stack, take->capture->options.stack_size, &t->interrupted) &&
		    !want_copy(copies, &t->interrupted))
			return take_out_of_memory(take);
	}
	return 0;
}

static int run_copies(struct take *take, struct copies *copies)
{
	struct bulk *bulk = copies->total ? take_add_bulk(take->snap, copies->total, 0) : NULL;
	uint8_t *dst = bulk ? bulk->data : NULL;
	VEC(struct memory_job) jobs = {0};
	int rc = 0;

	if ((copies->total && !bulk) || !vec_reserve(&jobs, copies->wanted.len))
		return take_out_of_memory(take);
	for (size_t i = 0; i < copies->wanted.len; i++) {
		struct mem_copy *copy = copies->wanted.data[i];

		copy->data = dst;
		jobs.data[jobs.len++] = (struct memory_job){.address = copy->start, .len = copy->len, .dst = dst};
		dst += (copy->len + 15) & ~UINT64_C(15);
	}
	rc = memory_copy(&take->capture->target->memory, jobs.data, jobs.len);
	for (size_t i = 0; i < jobs.len; i++)
		memory_job_finish(&jobs.data[i], copies->wanted.data[i]);
	vec_deinit(&jobs);
	copies->wanted.len = 0;
	copies->total = 0;
	/* Other errors are seen thread by thread. */
	if (rc == -EPERM || rc == -EACCES)
		return process_explain_denied(&take->capture->target->process, -rc, "its memory cannot be read", take->err);
	return 0;
}

/* Copies the stacks of all threads to be taken that are asleep. None of them is stopped. */
int take_copy_asleep(struct take *take)
{
	struct copies copies = {0};
	int rc = want_stacks(take, &copies);

	if (rc == 0 && copies.wanted.len)
		rc = run_copies(take, &copies);
	share(take, &copies);
	if (rc == 0)
		rc = want_interrupted(take, &copies);
	if (rc == 0 && copies.wanted.len)
		rc = run_copies(take, &copies);
	vec_deinit(&copies.wanted);
	u64map_deinit(&copies.readers);
	vec_deinit(&copies.shared);
	for (size_t i = 0; i < take->work.len; i++) {
		struct snap_thread *t = &take->snap->threads.data[i];

		if (take->work.data[i] == WORK_ASLEEP && !t->stack.len && t->stack.unanswered)
			take_set_unanswered(take->snap, t);
		else if (take->work.data[i] == WORK_ASLEEP && !t->stack.len)
			take_set_status(take->snap, t, THREAD_UNREADABLE, "its stack pointer is not in readable memory");
	}
	return rc < 0 ? rc : take_read_asleep(take);
}

/* What pass 2 does not show has ended, unless the pass itself was cut short. */
static void drop_ended(struct take *take)
{
	for (size_t i = 0; i < take->snap->threads.len; i++) {
		pid_t tid = take->snap->threads.data[i].tid;
		char state;

		/* One that was held, or read in a window, was there at that instant, whatever became of it. */
		if (take->work.data[i] == WORK_SETTLED || take->work.data[i] == WORK_HELD || take->work.data[i] == WORK_QUIET ||
		    take_find_observed(take->capture, tid))
			continue;
		take->work.data[i] = task_state(&take->capture->target->process, tid, &state) < 0 ? WORK_DROP : WORK_TAKE;
	}
}

/* Of those that were read in a window, and had slept since the first pass for a while. */
static bool lacks_kernel_stack(const struct take *take, size_t i)
{
	const struct snap_thread *t = &take->snap->threads.data[i];

	return take->work.data[i] == WORK_QUIET && !t->nkernel && t->off_cpu_ns >= 0;
}

static bool any_without_kernel_stack(const struct take *take)
{
	for (size_t i = 0; take->capture->options.kernel_stacks && i < take->work.len; i++)
		if (lacks_kernel_stack(take, i))
			return true;
	return false;
}

/* Whoever has not run since the window is still where it was then. False when memory is exhausted. */
static bool store_missing_kernel_stacks(struct take *take)
{
	for (size_t i = 0; i < take->work.len; i++) {
		struct snap_thread *t = &take->snap->threads.data[i];
		const struct observation *o = lacks_kernel_stack(take, i) ? take_find_observed(take->capture, t->tid) : NULL;

		if (o && !o->on_cpu && take_unmoved(o, t) && !store_kernel_stack(take->snap, o, t))
			return false;
	}
	return true;
}

static void note_stillness(const struct take *take, const struct observation *o, struct snap_thread *t)
{
	t->still = STILL_THROUGHOUT;
	t->still_in = take->passes;
	t->woken = o->state == 'R';
}

/*
 * Pass 2. A thread that was copied asleep and has not got a CPU since slept throughout, so the copy is exact, at every
 * instant between the passes: also at the one at which the running threads were held, or nobody could run. Returns how many threads must
 * be taken again, or -errno.
 */
static int check_pass(struct take *take)
{
	struct capture *c = take->capture;
	bool lacks_kernel = any_without_kernel_stack(take);
	int again = 0, rc = take_observe(take, 0, !lacks_kernel);

	if (rc < 0)
		return rc;
	drop_ended(take);
	if (lacks_kernel && !store_missing_kernel_stacks(take))
		return take_out_of_memory(take);
	for (size_t i = 0; i < c->seen.len; i++) {
		const struct observation *o = &c->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);

		if (!take_wants(c, o->tid))
			continue;
		if (!slot)
			again += !state_is_dead(o->state); /* created since */
		else if (take->work.data[*slot] == WORK_ASLEEP && !take_unmoved(o, &take->snap->threads.data[*slot]))
			take->work.data[*slot] = WORK_TAKE;
		else if (take->work.data[*slot] == WORK_ASLEEP)
			note_stillness(take, o, &take->snap->threads.data[*slot]);
	}
	for (size_t i = 0; i < take->work.len; i++)
		again += take->work.data[i] == WORK_TAKE;
	return again;
}

/* Before another round: what was held has run since, so it belongs to the next instant. */
static void release_held(struct take *take)
{
	for (size_t i = 0; i < take->work.len; i++) {
		if (take->work.data[i] == WORK_HELD || take->work.data[i] == WORK_QUIET)
			take->work.data[i] = WORK_TAKE;
		if (take->work.data[i] == WORK_TAKE)
			take->snap->threads.data[i].retakes++;
	}
}

/* Before the pass, as it takes longer; whoever is created after it has its stack where that map may not have one. */
static int renew_maps(struct take *take)
{
	int rc = take_refresh_maps(take);

	take->maps_fresh = false;
	return rc;
}

/* A round begins with a look at all of them. */
static int begin_round(struct take *take, bool anew)
{
	int rc = 0;

	if (anew)
		rc = take_observe(take, 0, false);
	if (rc == 0 && anew)
		rc = take_store_pass(take);
	take_refresh_reader(take);
	return rc;
}

/* Then what is asleep is copied, and what runs set aside for a window, if there can be one. */
static int copy_round(struct take *take)
{
	take_set_aside(take);
	return take_copy_asleep(take);
}

/* The second: without a window what runs is held. How many threads have to be taken again, or -errno. */
static int end_round(struct take *take, bool had_window)
{
	int rc = 0;

	if (!had_window) /* else another instant would be no help */
		rc = take_hold_running(take);
	return rc < 0 ? rc : check_pass(take);
}

/* All of it, for one process. */
static int take_round(struct take *take)
{
	int rc = renew_maps(take);

	if (rc == 0)
		rc = begin_round(take, true);
	if (rc == 0)
		rc = copy_round(take);
	return rc < 0 ? rc : end_round(take, false);
}

static size_t settle_taken(struct take *take)
{
	size_t left = 0;

	for (size_t i = 0; i < take->work.len; i++) {
		if (take->work.data[i] == WORK_ASLEEP || take->work.data[i] == WORK_HELD || take->work.data[i] == WORK_QUIET)
			take->work.data[i] = WORK_SETTLED;
		left += take->work.data[i] == WORK_TAKE;
	}
	return left;
}

/* One thread by itself: from the first look to the last it is a matter of microseconds. False: it moved again. */
static int take_alone(struct take *take, size_t at, bool *taken)
{
	pid_t tid = take->snap->threads.data[at].tid;
	const struct observation *o;
	int rc = take_observe(take, tid, false);

	take->work.data[at] = WORK_TAKE;
	if (rc == 0)
		rc = take_store_pass(take);
	if (rc == 0 && !take->capture->seen.len)
		take->work.data[at] = WORK_DROP;
	if (rc == 0)
		rc = take_copy_asleep(take);
	if (rc == 0)
		rc = take_hold_running(take);
	*taken = take->work.data[at] != WORK_TAKE;
	if (rc < 0 || take->work.data[at] != WORK_ASLEEP)
		return rc;
	rc = take_observe(take, tid, true);
	o = take_find_observed(take->capture, tid);
	*taken = o && take_unmoved(o, &take->snap->threads.data[at]);
	return rc;
}

/* Those that moved in every round: each is taken at an instant of its own, first all together, then one by one. */
static int take_rest(struct take *take)
{
	struct snapshot *snap = take->snap;
	size_t settled = snap->threads.len - settle_taken(take);
	int again = 1, rc = 0;

	for (int i = 0; again > 0 && i < MAX_TRIES; i++) {
		again = take_round(take);
		if (again < 0)
			return again;
		settle_taken(take);
	}
	for (size_t i = 0; i < take->work.len; i++)
		if (take->work.data[i] == WORK_TAKE) {
			take->work.data[i] = WORK_SETTLED; /* out of the way of the others */
			snap->threads.data[i].capture = CAPTURE_MOVED;
		}
	for (size_t i = 0, n = 0; rc == 0 && n < MAX_ALONE && i < take->work.len; i++) {
		bool taken = false;

		if (snap->threads.data[i].capture != CAPTURE_MOVED)
			continue;
		for (int tries = 0; rc == 0 && !taken && tries < MAX_TRIES_ALONE; tries++)
			rc = take_alone(take, i, &taken);
		if (!taken)
			snap->threads.data[i].capture = CAPTURE_MOVED;
		if (take->work.data[i] != WORK_DROP)
			take->work.data[i] = WORK_SETTLED;
		n++;
	}
	snap->capture.inconsistent_why =
		arena_printf(snap->arena, "%zu of %zu threads ran or were created during every pass and were taken at instants of their own",
			     snap->threads.len - settled, snap->threads.len);
	if (!snap->capture.inconsistent_why)
		snap->capture.inconsistent_why = "threads were taken at instants of their own";
	return rc;
}

/* The same number for what belongs to one round, whatever passes some of them needed besides: they are compared between processes. */
static void align_passes(struct take *const *takes, size_t n, bool first)
{
	uint32_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = takes[i]->passes > most ? takes[i]->passes : most;
	for (size_t i = 0; i < n; i++)
		takes[i]->passes = most;
	for (size_t i = 0; first && i < n; i++) /* all are of the last pass */
		for (size_t k = 0; k < takes[i]->snap->threads.len; k++)
			takes[i]->snap->threads.data[k].read_in = most;
}

/*
 * One round for all of them, towards one instant. All are looked at before anything is copied of any, and all copied before any is looked
 * at again: so a thread of one process that was still all the round had what it had when a lock was read that one of another waits for.
 * How many threads have to be taken again.
 */
static int joint_round(struct take *const *takes, size_t n, bool first)
{
	struct foreground foreground = {0};
	bool had_window, anew;
	int again = 0;

	for (size_t i = 0; !first && i < n; i++)
		if (takes[i]->rc == 0)
			takes[i]->rc = renew_maps(takes[i]);
	anew = take_prepare_window(takes, n, &foreground) || !first;
	align_passes(takes, n, first);
	for (size_t i = 0; i < n; i++)
		if (takes[i]->rc == 0)
			takes[i]->rc = begin_round(takes[i], anew);
	if (first && n == 1)
		take_begin_between(takes[0]);
	for (size_t i = 0; i < n; i++)
		if (takes[i]->rc == 0)
			takes[i]->rc = copy_round(takes[i]);
	if (first && n == 1)
		take_gather_between(takes[0]);
	had_window = take_quiet(takes, n);
	for (size_t i = 0; i < n; i++) {
		int rc = takes[i]->rc == 0 ? end_round(takes[i], had_window) : takes[i]->rc;

		takes[i]->rc = rc < 0 ? rc : 0;
		takes[i]->again = rc > 0 ? rc : 0;
		again += takes[i]->again;
	}
	foreground_end(&foreground);
	return again;
}

/* The passive algorithm: rounds until every thread has been seen to sleep throughout, was read in a window, or was held. */
void take_passive(struct take *const *takes, size_t n)
{
	const uint64_t start = monotonic_ns();
	uint64_t passes_ns = 0;
	int again = 1;

	for (size_t i = 0; i < n; i++)
		passes_ns += takes[i]->pass_ns;
	for (size_t i = 0; i < n; i++)
		takes[i]->recent_ns = SOME_TIME_NS + 4 * passes_ns; /* a round is one of all */
	for (unsigned round = 0; again && round < MAX_ROUNDS + takes[0]->windows_tried; round++) {
		for (size_t i = 0; round > 0 && i < n; i++)
			release_held(takes[i]);
		again = joint_round(takes, n, round == 0);
		if (round == 0 && n == 1) {
			takes[0]->rc = take_end_between(takes[0]);
			if (takes[0]->rc < 0)
				return;
		}
		/* Threads that sleep for longer get up during a round, too, only less often. */
		for (size_t i = 0; i < n; i++)
			takes[i]->recent_ns = takes[i]->recent_ns * LONGER + 2 * (monotonic_ns() - start);
	}
	for (size_t i = 0; i < n; i++)
		if (takes[i]->rc == 0 && takes[i]->again) {
			takes[i]->capture->no_windows = true;
			takes[i]->snap->capture.instant_ns = 0;
			takes[i]->rc = take_rest(takes[i]);
		}
}
