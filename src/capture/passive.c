/* SPDX-License-Identifier: MIT */
/* Threads that are asleep: read without being stopped, and proved to have slept. */
#include <errno.h>
#include <string.h>

#include "capture/take.h"

enum {
	MAX_ROUNDS = 3, /* over all threads that moved */
	MAX_TRIES = 3,	/* for one thread that moved in every round */
};

/* Writes what a pass saw into the snapshot's thread. False when memory is exhausted. */
static bool store_observed(struct take *take, const struct observed *o, struct snap_thread *t)
{
	struct snapshot *snap = take->snap;

	memcpy(t->name, o->name, sizeof(t->name));
	t->state = o->state;
	t->nvcsw = o->nvcsw;
	t->nivcsw = o->nivcsw;
	t->off_cpu_ns = o->off_cpu_ns;
	t->syscall = o->syscall;
	t->regs = o->regs;
	t->status = THREAD_CAPTURED;
	t->why = NULL;
	t->nkernel = 0;
	t->kernel_pcs = NULL;
	t->kernel_text = NULL;
	if (o->kernel_error && !snap->capture.kernel_stack_error)
		snap->capture.kernel_stack_error =
			o->kernel_error == -EACCES || o->kernel_error == -EPERM
				? "kernel stacks need root, or CAP_BPF and CAP_PERFMON (BPF), or CAP_SYS_ADMIN (/proc/PID/task/TID/stack)"
				: arena_printf(snap->arena, "kernel stacks: %s", strerror(-o->kernel_error));
	if (!o->nkernel)
		return true;
	if (o->kernel_pcs) {
		t->kernel_pcs = arena_alloc(snap->arena, o->nkernel * sizeof(*t->kernel_pcs));
		if (!t->kernel_pcs)
			return false;
		memcpy(t->kernel_pcs, o->kernel_pcs, o->nkernel * sizeof(*t->kernel_pcs));
	} else {
		t->kernel_text = arena_alloc(snap->arena, o->nkernel * sizeof(*t->kernel_text));
		if (!t->kernel_text)
			return false;
		memcpy(t->kernel_text, o->kernel_text, o->nkernel * sizeof(*t->kernel_text));
	}
	t->nkernel = o->nkernel;
	return true;
}

/* A thread of which nothing, or nothing more, can be taken: says why. */
static bool settle(struct take *take, const struct observed *o, struct snap_thread *t)
{
	if (state_is_dead(o->state)) {
		take_set_status(take->snap, t, THREAD_ZOMBIE, "it has ended and waits to be reaped");
		return true;
	}
	if (take->snap->kernel_thread) {
		take_set_status(take->snap, t, THREAD_KERNEL, "a kernel thread has no user stack");
		return true;
	}
	return false;
}

/* Takes over the details of the last full pass for every thread that is still to be taken, and for new ones. */
int take_store_pass(struct take *take)
{
	struct capture *c = take->capture;

	for (size_t i = 0; i < c->seen.len; i++) {
		const struct observed *o = &c->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);
		struct snap_thread *t;
		size_t at;

		if (!take_wants(c, o->tid))
			continue;
		if (slot)
			at = (size_t)*slot;
		else if (take_add_thread(take, o->tid, &at) < 0)
			return -ENOMEM;
		if (take->work.data[at] != WORK_TAKE)
			continue;
		t = &take->snap->threads.data[at];
		if (!store_observed(take, o, t))
			return take_out_of_memory(take);
		if (settle(take, o, t))
			take->work.data[at] = WORK_SETTLED;
		else if (o->state == 'R' && t->retakes && c->options.stop != STOP_NONE)
			t->regs.valid = 0; /* it waits for a CPU and gets one again and again: to be held, as if it ran */
		else if (!o->running && o->regs_error)
			take_set_status(take->snap, t, THREAD_NOT_PERMITTED, "its registers cannot be read: /proc/PID/task/TID/syscall is refused");
	}
	return 0;
}

/* How much of the stack of a thread that is asleep there is to copy; 0: nothing. */
static uint64_t stack_extent(struct take *take, struct snap_thread *t)
{
	uint64_t sp = t->regs.v[take->snap->arch->user_sp], len;
	const struct map_entry *map = take_stack_region(take, sp);

	t->stack = (struct mem_copy){0};
	if (!map)
		return 0;
	len = map->end - sp;
	t->stack = (struct mem_copy){.start = sp, .region_end = map->end};
	return len < take->capture->options.stack_size ? len : take->capture->options.stack_size;
}

/* Copies the stacks of all threads to be taken that are asleep. None of them is stopped. */
int take_copy_asleep(struct take *take)
{
	struct snapshot *snap = take->snap;
	VEC(struct vmread_job) jobs = {0};
	VEC(size_t) owners = {0};
	struct bulk *bulk = NULL;
	uint64_t total = 0;
	int rc = 0;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];
		struct vmread_job job = {0};

		if (take->work.data[i] != WORK_TAKE || !take_has_sp(take, t))
			continue;
		t->capture = CAPTURE_ASLEEP;
		take->work.data[i] = WORK_ASLEEP;
		job.len = stack_extent(take, t);
		job.address = t->stack.start;
		total += (job.len + 15) & ~UINT64_C(15);
		if (!vec_push(&jobs, job) || !vec_push(&owners, i))
			rc = take_out_of_memory(take);
	}
	if (rc == 0 && total && !(bulk = take_add_bulk(snap, total, 0)))
		rc = take_out_of_memory(take);
	if (rc == 0 && bulk) {
		uint8_t *dst = bulk->data;

		for (size_t i = 0; i < jobs.len; i++) {
			jobs.data[i].dst = dst;
			dst += (jobs.data[i].len + 15) & ~UINT64_C(15);
		}
		rc = vmread_copy(&take->capture->vm, jobs.data, jobs.len);
		if (rc == -EPERM || rc == -EACCES)
			rc = process_explain_denied(&take->capture->process, -rc, "its memory cannot be read", take->err);
		else
			rc = 0; /* a stack that could not be read whole is seen below, thread by thread */
	}
	for (size_t i = 0; rc == 0 && i < jobs.len; i++) {
		struct snap_thread *t = &snap->threads.data[owners.data[i]];

		t->stack.data = jobs.data[i].dst;
		t->stack.len = jobs.data[i].done;
		if (!t->stack.len)
			take_set_status(snap, t, THREAD_UNREADABLE, "its stack pointer is not in readable memory");
		else if (t->stack.len < jobs.data[i].len)
			t->stack.region_end = t->stack.start + t->stack.len; /* the rest is unreadable, not left out */
	}
	vec_deinit(&jobs);
	vec_deinit(&owners);
	return rc;
}

/*
 * Pass 2. A thread that was copied asleep and shows the counters it had then has slept throughout, so the copy is
 * exact, at every instant between the passes: also at the one at which the running threads were held. Returns how
 * many threads must be taken again, or -errno.
 */
static int check_pass(struct take *take)
{
	struct capture *c = take->capture;
	struct snapshot *snap = take->snap;
	VEC(bool) present = {0};
	int again = 0, rc = take_observe(c, snap, 0, true, take->err);

	if (rc < 0)
		return rc;
	if (take->generation && c->seen.generation && c->seen.generation != take->generation)
		return -EAGAIN; /* an exec: nothing of what was taken is left */
	if (!vec_reserve(&present, snap->threads.len + 1))
		return take_out_of_memory(take);
	memset(present.data, 0, snap->threads.len * sizeof(*present.data));
	for (size_t i = 0; i < c->seen.len; i++) {
		const struct observed *o = &c->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);

		if (!take_wants(c, o->tid))
			continue;
		if (!slot) {
			again += !state_is_dead(o->state); /* created since */
			continue;
		}
		present.data[*slot] = true;
		if (take->work.data[*slot] == WORK_ASLEEP && !take_same_counters(o, &snap->threads.data[*slot]))
			take->work.data[*slot] = WORK_TAKE;
		again += take->work.data[*slot] == WORK_TAKE;
	}
	for (size_t i = 0; i < snap->threads.len; i++)
		if (!present.data[i] && take->work.data[i] != WORK_SETTLED)
			take->work.data[i] = WORK_DROP;
	vec_deinit(&present);
	return again;
}

/* Before another round: what was held has run since, so it belongs to the next instant. */
static void release_held(struct take *take)
{
	for (size_t i = 0; i < take->work.len; i++) {
		if (take->work.data[i] == WORK_HELD)
			take->work.data[i] = WORK_TAKE;
		if (take->work.data[i] == WORK_TAKE) {
			take->snap->threads.data[i].regs.valid = 0;
			take->snap->threads.data[i].retakes++;
		}
	}
}

/* A thread that moved in every round is taken at an instant of its own. */
static int take_alone(struct take *take, size_t at)
{
	struct capture *c = take->capture;
	struct snap_thread *t = &take->snap->threads.data[at];

	for (int tries = 0; tries < MAX_TRIES; tries++) {
		const struct observed *o;
		int rc;

		take->work.data[at] = WORK_TAKE;
		t->regs.valid = 0;
		rc = take_observe(c, take->snap, t->tid, false, take->err);
		if (rc < 0)
			return rc;
		o = take_find_observed(c, t->tid);
		if (!o || state_is_dead(o->state)) {
			take->work.data[at] = WORK_DROP;
			return 0;
		}
		rc = take_store_pass(take);
		if (rc == 0)
			rc = take_copy_asleep(take);
		if (rc == 0)
			rc = take_hold_running(take);
		if (rc < 0)
			return rc;
		t = &take->snap->threads.data[at];
		if (take->work.data[at] == WORK_TAKE)
			continue; /* fell asleep in between */
		if (take->work.data[at] != WORK_ASLEEP)
			return 0;
		rc = take_observe(c, take->snap, t->tid, true, take->err);
		if (rc < 0)
			return rc;
		o = take_find_observed(c, t->tid);
		if (o && take_same_counters(o, t))
			return 0;
	}
	t->capture = CAPTURE_MOVED;
	return 0;
}

static int take_rest_alone(struct take *take)
{
	size_t alone = 0, n = take->snap->threads.len;
	int rc = 0;

	/* Others that wait to be taken are left out while one is. */
	for (size_t i = 0; i < n; i++)
		if (take->work.data[i] == WORK_TAKE)
			take->work.data[i] = WORK_SETTLED, take->snap->threads.data[i].capture = CAPTURE_MOVED;
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (take->snap->threads.data[i].capture == CAPTURE_MOVED) {
			alone++;
			take->snap->threads.data[i].capture = CAPTURE_NONE;
			rc = take_alone(take, i);
		}
	take->snap->capture.inconsistent_why = arena_printf(
		take->snap->arena, "%zu thread%s moved during every pass and %s taken at %s own instant", alone,
		alone == 1 ? "" : "s", alone == 1 ? "was" : "were", alone == 1 ? "its" : "their");
	return rc;
}

/* The passive algorithm: rounds until every thread has been seen to sleep throughout, or was held. */
int take_passive(struct take *take)
{
	int rc = 0;

	for (int round = 0; round < MAX_ROUNDS; round++) {
		if (round > 0) {
			release_held(take);
			take->maps_fresh = false;
			rc = take_observe(take->capture, take->snap, 0, false, take->err);
			if (rc == 0)
				rc = take_store_pass(take);
		}
		if (rc == 0)
			rc = take_copy_asleep(take);
		if (rc == 0)
			rc = take_hold_running(take);
		if (rc == 0)
			rc = check_pass(take);
		if (rc <= 0)
			return rc;
	}
	return take_rest_alone(take);
}
