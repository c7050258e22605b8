/* SPDX-License-Identifier: MIT */
/* Threads that run, or all of them: held together for one instant. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/debug.h"
#include "capture/freeze.h"
#include "capture/restart.h"
#include "capture/take.h"
#include "privilege/remedy.h"
#include "proc/task.h"

enum {
	LIKELY_STACK = 32 * 1024,	 /* of a thread that runs; pages are made ready for so much */
	STRAGGLER_NS = 10 * 1000 * 1000, /* how long the held ones wait for the last to stop, */
	STRAGGLER_NS_PER_THREAD = 100 * 1000, /* and longer where there are many */
};

static const uint64_t most_room = UINT64_C(1) << 30;

static void count_hold(struct snapshot *snap, struct snap_thread *t, uint64_t pause_ns)
{
	if (pause_ns > t->pause_ns)
		t->pause_ns = pause_ns;
	if (pause_ns > snap->capture.max_pause_ns)
		snap->capture.max_pause_ns = pause_ns;
}

/* What the pass told is not of the instant of the stop: the thread has run in between. */
static void forget_pass(struct snap_thread *t)
{
	t->state = 'R';
	t->off_cpu_ns = -1;
	t->syscall = (struct snap_syscall){.state = SYSCALL_UNKNOWN};
	t->nkernel = 0;
}

static enum work store_stopped(struct take *take, const struct held_thread *h, struct snap_thread *t)
{
	struct snapshot *snap = take->snap;
	uint64_t pc = t->regs.v[snap->arch->user_pc];
	bool same = freeze_is_same_place(snap->arch, &t->regs, &h->regs);

	count_hold(snap, t, h->pause_ns);
	if (!same)
		forget_pass(t);
	t->capture = CAPTURE_HELD;
	t->regs = h->regs;
	if (same)
		t->regs.v[snap->arch->user_pc] = pc;
	t->stack = h->stack;
	t->interrupted = h->interrupted;
	t->status = THREAD_CAPTURED;
	t->why = NULL;
	if (!t->regs.valid) {
		take_set_status(snap, t, THREAD_32BIT, "it runs 32-bit code, which is not walked");
	} else if (!t->stack.len && t->stack.unanswered) {
		take_set_unanswered(snap, t);
	} else if (!t->stack.len) {
		take_set_status(snap, t, THREAD_UNREADABLE, "its stack pointer is not in readable memory");
		return WORK_TAKE; /* its stack may be newer than the memory map */
	}
	return WORK_HELD;
}

/* Writes what holding a thread gave into the snapshot. */
static enum work store_held(struct take *take, const struct held_thread *h, struct snap_thread *t)
{
	struct snapshot *snap = take->snap;
	const char *runs = take->capture->options.stop == STOP_ALL ? "" : "it runs, and "; /* else it would not be stopped */
	struct task_status status;
	char help[REMEDY_SIZE], why[REMEDY_SIZE + 50];

	if (h->result == HELD_STOPPED)
		return store_stopped(take, h, t);
	t->capture = CAPTURE_NONE;
	switch (h->result) {
	case HELD_GONE:
		return WORK_DROP;
	case HELD_TRACED:
		if (task_status(&take->capture->target->process, t->tid, &status) == 0)
			t->tracer = status.tracer;
		t->status = THREAD_TRACED;
		t->why = arena_printf(snap->arena, "%sprocess %d traces it already: only one tracer can stop it", runs,
				      (int)t->tracer);
		return WORK_SETTLED;
	case HELD_DENIED:
		snprintf(why, sizeof(why), "%sptrace was refused: %s", runs, remedy(REFUSED_PTRACE, help));
		take_set_status(snap, t, THREAD_NOT_PERMITTED, why);
		return WORK_SETTLED;
	case HELD_TIMEOUT:
		t->status = THREAD_STOP_TIMEOUT;
		t->why = arena_printf(snap->arena, "it did not stop within %u ms (state D cannot be interrupted)",
				      take->capture->options.stop_timeout_ms);
		return WORK_SETTLED;
	default:
		return WORK_TAKE;
	}
}

struct hold_mode {
	size_t nfirst;	    /* see struct freeze_request */
	size_t known_bytes; /* of the stacks of those */
	bool look_first;
	bool whole_process;
	bool reads; /* what options.reader wants, too, */
	bool adds;  /* in addition to what was read of the same threads before */
};

static void forward_held(void *arg, const struct held_thread *held, struct mem *peek)
{
	struct take *take = arg;
	const struct capture_options *options = &take->capture->options;
	const struct arch *arch = take->snap->arch;
	uint64_t *slot = u64map_find(&take->index, (uint64_t)held->tid);
	const struct user_regs *seen = slot ? &take->snap->threads.data[*slot].regs : NULL;
	struct user_regs regs = held->regs;

	if (seen && freeze_is_same_place(arch, seen, &regs))
		regs.v[arch->user_pc] = seen->v[arch->user_pc];
	options->on_held(options->on_held_arg, take->snap, held->tid, &regs, peek);
}

/* Holds the listed threads at one instant; what it gave is in the list. */
static int freeze_list(struct take *take, struct held_list *list, struct hold_mode mode, uint64_t wait_ns)
{
	struct capture *c = take->capture;
	size_t unknown = list->len - mode.nfirst + (mode.whole_process ? FREEZE_ROOM_FOR_CLONES : 0);
	uint64_t room = unknown * c->options.stack_size;
	struct recorder_room more;
	struct bulk *bulk;
	int rc;
	struct freeze_request request = {
		.process = &c->target->process,
		.arch = take->snap->arch,
		.maps = &take->snap->maps,
		.vm = &c->target->memory,
		.stack_size = c->options.stack_size,
		.wait_ns = wait_ns,
		.nfirst = mode.nfirst,
		.look_first = mode.look_first,
		.whole_process = mode.whole_process,
		.on_held = c->options.on_held ? forward_held : NULL,
		.on_held_arg = take,
		.stood_ns = &take->snap->capture.instant_ns,
	};

	if (room > most_room)
		room = most_room;
	bulk = take_add_bulk(take->snap, mode.known_bytes + room + c->options.stack_size, mode.known_bytes + (list->len - mode.nfirst) * LIKELY_STACK);
	if (!bulk)
		return take_out_of_memory(take);
	request.buffer = *bulk;
	if (!mode.reads || !c->reads)
		return freeze_threads(&request, take->err, list);
	if (!take_add_room(take, list->len + (mode.whole_process ? FREEZE_ROOM_FOR_CLONES : 0), &more)) {
		take_do_without(take);
		return freeze_threads(&request, take->err, list);
	}
	request.reader = c->options.reader;
	request.room = &more;
	rc = freeze_threads(&request, take->err, list);
	return rc < 0 ? (free(more.copies), rc) : take_keep_room(take, &more, !mode.adds);
}

/*
 * Where a held thread is in the snapshot. It is appended when it was created while we held the others; *at is
 * SIZE_MAX when it has ended, or was the first thread of another process.
 */
static int find_or_add(struct take *take, pid_t tid, size_t *at)
{
	uint64_t *slot = u64map_find(&take->index, (uint64_t)tid);
	struct task_status status;
	int rc;

	*at = slot ? (size_t)*slot : SIZE_MAX;
	if (slot || task_status(&take->capture->target->process, tid, &status) < 0)
		return 0;
	rc = take_add_thread(take, tid, at);
	if (rc == 0)
		memcpy(take->snap->threads.data[*at].name, status.name, sizeof(status.name));
	return rc;
}

/* One that had not stopped when the others were let go gets the rest of the time, by itself. */
static int hold_late(struct take *take, struct held_thread *h, struct hold_mode mode, uint64_t deadline)
{
	struct held_list alone = {0};
	uint64_t now = monotonic_ns(), wait_ns = deadline > now + STRAGGLER_NS ? deadline - now : STRAGGLER_NS;
	int rc;

	if (!vec_push(&alone, (struct held_thread){.tid = h->tid, .altstack = h->altstack, .stack_end = h->stack_end, .seen = h->seen}))
		return take_out_of_memory(take);
	rc = freeze_list(take, &alone, (struct hold_mode){.look_first = mode.look_first, .reads = mode.reads, .adds = mode.adds}, wait_ns);
	*h = alone.data[0];
	vec_deinit(&alone);
	return rc;
}

static int hold(struct take *take, struct held_list *list, struct hold_mode mode)
{
	struct snapshot *snap = take->snap;
	uint64_t timeout_ns = (uint64_t)take->capture->options.stop_timeout_ms * 1000000u;
	uint64_t wait_ns = STRAGGLER_NS + list->len * STRAGGLER_NS_PER_THREAD;
	uint64_t deadline = monotonic_ns() + timeout_ns;
	int rc = freeze_list(take, list, mode, wait_ns < timeout_ns ? wait_ns : timeout_ns);

	for (size_t i = 0; rc == 0 && i < list->len; i++) {
		struct held_thread *h = &list->data[i];
		size_t at;

		if (h->result == HELD_TIMEOUT && timeout_ns > wait_ns) {
			rc = hold_late(take, h, mode, deadline);
			if (h->result == HELD_STOPPED && !snap->capture.inconsistent_why)
				snap->capture.inconsistent_why = "a thread stopped later than the others";
		}
		if (rc == 0)
			rc = find_or_add(take, h->tid, &at);
		if (rc == 0 && at != SIZE_MAX)
			take->work.data[at] = store_held(take, h, &snap->threads.data[at]);
	}
	debug_say(rc, "%zu threads were held by ptrace, the longest for %.1f µs", list->len, (double)snap->capture.max_pause_ns / 1e3);
	if (mode.whole_process && list->len >= list->cap)
		snap->capture.inconsistent_why = "more threads were created than could be stopped";
	return rc;
}

/* Threads that are to be taken and were seen running. */
static int list_running(struct take *take, struct held_list *list)
{
	struct snapshot *snap = take->snap;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct held_thread h = {.tid = snap->threads.data[i].tid, .altstack = snap->threads.data[i].altstack};

		if (take->work.data[i] == WORK_TAKE && !take_has_sp(take, &snap->threads.data[i]) && !vec_push(list, h))
			return take_out_of_memory(take);
	}
	return 0;
}

/* Says why they are missing. */
static void settle_running(struct take *take)
{
	const char *why = take->capture->unstoppable ? "it runs, and its number means another thread to ptrace"
						     : "it runs, and --stop=none does not let it be stopped";

	for (size_t i = 0; i < take->snap->threads.len; i++) {
		if (take->work.data[i] != WORK_TAKE)
			continue;
		take_set_status(take->snap, &take->snap->threads.data[i], THREAD_RUNNING, why);
		take->work.data[i] = WORK_SETTLED;
	}
}

int take_hold_running(struct take *take)
{
	struct held_list list = {0};
	int rc;

	if (take->capture->options.stop == STOP_NONE) {
		settle_running(take);
		return 0;
	}
	rc = list_running(take, &list);
	if (rc == 0 && list.len)
		rc = hold(take, &list, (struct hold_mode){.look_first = true, .reads = true});
	vec_deinit(&list);
	return rc;
}

/* Lists what can be stopped: those asleep, whose stacks are known, then those that run. */
static int list_stoppable(struct take *take, struct held_list *list, struct hold_mode *mode)
{
	for (int running = 0; running < 2; running++) {
		for (size_t i = 0; i < take->snap->threads.len; i++) {
			const struct snap_thread *t = &take->snap->threads.data[i];
			struct held_thread h = {.tid = t->tid, .altstack = t->altstack};

			if (take->work.data[i] != WORK_TAKE || t->state == 'D' || take_has_sp(take, t) == running)
				continue;
			if (!running) {
				struct mem_copy extent = take_stack_extent(take, t, t->regs.v[take->snap->arch->user_sp]);

				h.stack_end = extent.region_end;
				mode->known_bytes += extent.len + 16;
			}
			if (!vec_push(list, h))
				return take_out_of_memory(take);
		}
		if (!running)
			mode->nfirst = list->len;
	}
	return 0;
}

static bool did_not_stop(const struct snap_thread *t)
{
	return t->status == THREAD_TRACED || t->status == THREAD_STOP_TIMEOUT;
}

/* What could not be stopped (state D, traced by another, too late on a busy machine) is read as it sleeps. */
static int take_unstoppable(struct take *take)
{
	struct snapshot *snap = take->snap;
	int rc;

	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if (did_not_stop(t) && take_has_sp(take, t))
			take->work.data[i] = WORK_TAKE;
		else if (t->capture == CAPTURE_HELD)
			take->work.data[i] = WORK_SETTLED;
	}
	rc = take_copy_asleep(take);
	if (rc == 0)
		rc = take_observe(take, 0, true); /* also tells of an exec */
	for (size_t i = 0; rc == 0 && i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];
		const struct observation *o = take_find_observed(take->capture, t->tid);

		if (take->work.data[i] != WORK_ASLEEP)
			continue;
		if (did_not_stop(t)) {
			t->status = THREAD_CAPTURED;
			t->why = NULL;
		}
		if (!o || !take_unmoved(o, t))
			t->capture = CAPTURE_MOVED;
	}
	return rc;
}

/* One stop of the whole process; again when a stack was newer than the memory map. */
int take_stopped(struct take *take)
{
	bool again = true;
	int rc = 0;

	for (int tries = 0; rc == 0 && again && tries < 3; tries++) {
		struct hold_mode mode = {.whole_process = !take->capture->options.tids, .reads = true};
		struct held_list list = {0};

		if (tries > 0)
			rc = take_refresh_maps(take);
		if (rc == 0)
			rc = list_stoppable(take, &list, &mode); /* reads the memory map again, if need be */
		take_refresh_reader(take);
		if (rc == 0 && take->capture->options.on_hold)
			rc = take->capture->options.on_hold(take->capture->options.on_held_arg, take->snap, take->err);
		if (rc == 0 && list.len)
			rc = hold(take, &list, mode);
		vec_deinit(&list);
		again = false;
		for (size_t i = 0; i < take->work.len; i++)
			again |= take->work.data[i] == WORK_TAKE && take->snap->threads.data[i].capture == CAPTURE_HELD;
		for (size_t i = 0; again && tries < 2 && i < take->work.len; i++)
			if (take->work.data[i] == WORK_HELD)
				take->work.data[i] = WORK_TAKE; /* all at one instant, so all again */
	}
	return rc < 0 ? rc : take_unstoppable(take);
}

/* Writes the registers that the stops gave; how many threads were stopped, and how many of them elsewhere than they were seen. */
static size_t store_registers(struct take *take, const struct held_list *list, struct snap_thread **threads,
			      size_t nthreads, size_t *moved)
{
	size_t stopped = 0;

	for (size_t i = 0, k = 0; i < nthreads && k < list->len; i++) {
		const struct held_thread *h = &list->data[k];

		if (h->tid != threads[i]->tid)
			continue; /* it was left out */
		k++;
		if (h->result != HELD_STOPPED)
			continue;
		stopped++;
		if (freeze_is_same_place(take->snap->arch, &threads[i]->regs, &h->regs)) {
			store_stopped(take, h, threads[i]);
			continue;
		}
		count_hold(take->snap, threads[i], h->pause_ns);
		++*moved;
	}
	return stopped;
}

int capture_complete_registers(struct capture *c, struct snapshot *snap, struct snap_thread **threads, size_t nthreads,
			       struct err *err)
{
	struct take take = {.capture = c, .snap = snap, .err = err};
	const struct hold_mode mode = {.reads = true, .adds = true};
	struct held_list list = {0};
	uint64_t deadline = monotonic_ns() + (uint64_t)c->options.stop_timeout_ms * 1000000u;
	const int64_t instant = snap->capture.instant_ns; /* which stays: only of threads that have slept since then more is learned */
	size_t stopped = 0, left = 0, moved = 0;
	int rc = take_look(c);

	for (size_t i = 0; rc == 0 && i < nthreads; i++) {
		struct held_thread h = {.tid = threads[i]->tid, .altstack = threads[i]->altstack, .seen = &threads[i]->regs};

		if (!capture_unmoved(c, threads[i]))
			moved++;
		else if (!restart_is_silent(&c->target->process, threads[i]->tid, snap->arch, &threads[i]->syscall))
			left++;
		else if (!vec_push(&list, h))
			rc = take_out_of_memory(&take);
	}
	if (rc == 0 && list.len)
		rc = freeze_list(&take, &list, mode, STRAGGLER_NS + list.len * STRAGGLER_NS_PER_THREAD);
	for (size_t i = 0; rc == 0 && i < list.len; i++)
		if (list.data[i].result == HELD_TIMEOUT) /* a busy machine: by itself it gets all the time */
			rc = hold_late(&take, &list.data[i], mode, deadline);
	if (rc == 0)
		stopped = store_registers(&take, &list, threads, nthreads, &moved);
	snap->capture.instant_ns = instant;
	snap->capture.stopped_threads += stopped;
	if (stopped)
		notes_add(&snap->notes, "%zu sleeping thread%s stopped to learn registers that /proc does not show; with BPF none would be",
			      stopped, stopped == 1 ? " was" : "s were");
	if (left)
		notes_add(&snap->notes,
			      "%zu sleeping thread%s not stopped to learn registers that /proc does not show: the system call would "
			      "fail with EINTR; --stop=all does it all the same, and with BPF no stop is needed",
			      left, left == 1 ? " was" : "s were");
	if (moved)
		notes_add(&snap->notes,
			      "%zu sleeping thread%s run on before registers that /proc does not show were learned; --stop=all takes "
			      "them all at once, and with BPF no stop is needed",
			      moved, moved == 1 ? " had" : "s had");
	vec_deinit(&list);
	return rc;
}
