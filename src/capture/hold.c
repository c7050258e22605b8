/* SPDX-License-Identifier: MIT */
/* Threads that run, or all of them: held together for one instant. */
#include <errno.h>
#include <string.h>

#include "capture/take.h"
#include "proc/task.h"

enum {
	HOLD_ROOM = 256 * 1024,		 /* for each stack of unknown extent, besides one of the full --stack-size */
	LIKELY_STACK = 32 * 1024,
	STRAGGLER_NS = 10 * 1000 * 1000, /* how long the held ones wait for the last to stop */
};

static void count_hold(struct snapshot *snap, struct snap_thread *t, uint64_t pause_ns)
{
	if (pause_ns > t->pause_ns)
		t->pause_ns = pause_ns;
	if (pause_ns > snap->capture.max_pause_ns)
		snap->capture.max_pause_ns = pause_ns;
}

/* Writes what holding a thread gave into the snapshot. */
static enum work store_held(struct take *take, const struct held *h, struct snap_thread *t)
{
	struct snapshot *snap = take->snap;
	struct task_status status;

	switch (h->result) {
	case HELD_STOPPED:
		count_hold(snap, t, h->pause_ns);
		t->capture = CAPTURE_HELD;
		t->regs = h->regs;
		t->stack = h->stack;
		t->status = THREAD_CAPTURED;
		t->why = NULL;
		if (!t->regs.valid)
			take_set_status(snap, t, THREAD_32BIT, "it runs 32-bit code, which is not walked");
		else if (!t->stack.len)
			take_set_status(snap, t, THREAD_UNREADABLE, "its stack pointer is not in readable memory");
		return WORK_HELD;
	case HELD_GONE:
		return WORK_DROP;
	case HELD_TRACED:
		if (task_status(&take->capture->process, t->tid, &status) == 0)
			t->tracer = status.tracer;
		t->status = THREAD_TRACED;
		t->why = arena_printf(snap->arena, "it runs, and process %d traces it already: only one tracer can stop it",
				      (int)t->tracer);
		return WORK_SETTLED;
	case HELD_DENIED:
		take_set_status(snap, t, THREAD_NOT_PERMITTED,
			   "it runs, and ptrace was refused: run as root, give stakeout CAP_SYS_PTRACE, or set "
			   "kernel.yama.ptrace_scope to 0");
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
	size_t known_bytes; /* of stacks whose extent is known already */
	bool look_first;
	bool whole_process;
};

static void forward_held(void *arg, const struct held *held, struct mem *peek)
{
	struct take *take = arg;
	const struct capture_options *options = &take->capture->options;

	options->on_held(options->on_held_arg, take->snap, held->tid, &held->regs, peek);
}

/* Holds the listed threads at one instant; what it gave is in the list. */
static int freeze_list(struct take *take, struct held_list *list, struct hold_mode mode)
{
	struct capture *c = take->capture;
	uint64_t timeout_ns = (uint64_t)c->options.stop_timeout_ms * 1000000u;
	size_t unknown = list->len - mode.nfirst + (mode.whole_process ? 64 : 0);
	size_t room = mode.known_bytes + unknown * HOLD_ROOM + c->options.stack_size;
	/* Pages are made ready for what is likely, so that copying need not wait for them. */
	struct bulk *bulk = take_add_bulk(take->snap, room, mode.known_bytes + (list->len - mode.nfirst) * LIKELY_STACK);
	struct freeze_request request = {
		.process = &c->process,
		.arch = take->snap->arch,
		.maps = &take->snap->maps,
		.vm = &c->vm,
		.stack_size = c->options.stack_size,
		.wait_ns = mode.whole_process || timeout_ns < STRAGGLER_NS ? timeout_ns : STRAGGLER_NS,
		.timeout_ns = timeout_ns,
		.nfirst = mode.nfirst,
		.look_first = mode.look_first,
		.whole_process = mode.whole_process,
		.on_held = c->options.on_held ? forward_held : NULL,
		.on_held_arg = take,
	};

	if (!bulk)
		return take_out_of_memory(take);
	request.buffer = *bulk;
	return freeze_threads(&request, take->err, list);
}

/* Where a held thread is in the snapshot; it is appended when it was created while we held the others. */
static int find_or_add(struct take *take, pid_t tid, size_t *at)
{
	uint64_t *slot = u64map_find(&take->index, (uint64_t)tid);
	struct task_status status;
	int rc;

	if (slot) {
		*at = (size_t)*slot;
		return 0;
	}
	rc = take_add_thread(take, tid, at);
	if (rc == 0 && task_status(&take->capture->process, tid, &status) == 0) {
		memcpy(take->snap->threads.data[*at].name, status.name, sizeof(status.name));
		take->snap->threads.data[*at].state = 'R';
	}
	return rc;
}

static int hold(struct take *take, struct held_list *list, struct hold_mode mode)
{
	struct snapshot *snap = take->snap;
	int rc = freeze_list(take, list, mode);

	for (size_t i = 0; rc == 0 && i < list->len; i++) {
		const struct held *h = &list->data[i];
		size_t at;

		rc = find_or_add(take, h->tid, &at);
		if (rc < 0)
			break;
		if (h->late && h->result == HELD_STOPPED && !snap->capture.inconsistent_why)
			snap->capture.inconsistent_why = "a thread stopped later than the others";
		take->work.data[at] = store_held(take, h, &snap->threads.data[at]);
	}
	return rc;
}

/* Threads that are to be taken and were seen running. */
static int list_running(struct take *take, struct held_list *list)
{
	struct snapshot *snap = take->snap;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct held h = {.tid = snap->threads.data[i].tid};

		if (take->work.data[i] == WORK_TAKE && !take_has_sp(take, &snap->threads.data[i]) && !vec_push(list, h))
			return take_out_of_memory(take);
	}
	return 0;
}

int take_hold_running(struct take *take)
{
	struct held_list list = {0};
	int rc = list_running(take, &list);

	if (rc == 0 && list.len && take->capture->options.stop == STOP_NONE) {
		for (size_t i = 0; i < list.len; i++) {
			size_t at = (size_t)*u64map_find(&take->index, (uint64_t)list.data[i].tid);

			take_set_status(take->snap, &take->snap->threads.data[at], THREAD_RUNNING,
				   "it runs, and --stop=none forbids to stop it");
			take->work.data[at] = WORK_SETTLED;
		}
	} else if (rc == 0 && list.len) {
		rc = hold(take, &list, (struct hold_mode){.look_first = true});
	}
	vec_deinit(&list);
	return rc;
}

/* What the copy of a sleeping thread's stack takes, with its alignment. */
static size_t stack_room(struct take *take, const struct snap_thread *t)
{
	uint64_t sp = t->regs.v[take->snap->arch->user_sp];
	const struct map_entry *map = take_stack_region(take, sp);
	uint64_t len = map ? map->end - sp : 0;

	return (len < take->capture->options.stack_size ? len : take->capture->options.stack_size) + 16;
}

/* Lists what can be stopped: those asleep, whose stacks are known, then those that run. */
static int list_stoppable(struct take *take, struct held_list *list, struct hold_mode *mode)
{
	for (int running = 0; running < 2; running++) {
		for (size_t i = 0; i < take->snap->threads.len; i++) {
			const struct snap_thread *t = &take->snap->threads.data[i];

			if (take->work.data[i] != WORK_TAKE || t->state == 'D' || take_has_sp(take, t) == running)
				continue;
			if (!vec_push(list, (struct held){.tid = t->tid}))
				return take_out_of_memory(take);
			if (!running)
				mode->known_bytes += stack_room(take, t);
		}
		if (!running)
			mode->nfirst = list->len;
	}
	return 0;
}

/* One stop of the whole process. What cannot be stopped (state D, traced by another) is read as it sleeps. */
int take_stopped(struct take *take)
{
	struct snapshot *snap = take->snap;
	struct hold_mode mode = {.whole_process = !take->capture->options.tids};
	struct held_list list = {0};
	int rc = list_stoppable(take, &list, &mode);

	if (rc == 0 && list.len)
		rc = hold(take, &list, mode);
	vec_deinit(&list);
	for (size_t i = 0; i < snap->threads.len; i++)
		if (snap->threads.data[i].status == THREAD_TRACED && take_has_sp(take, &snap->threads.data[i]))
			take->work.data[i] = WORK_TAKE;
	if (rc == 0)
		rc = take_copy_asleep(take);
	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (t->capture != CAPTURE_ASLEEP)
			continue;
		if (t->status == THREAD_TRACED) {
			t->status = THREAD_CAPTURED;
			t->why = NULL;
		}
		if (!capture_unmoved(take->capture, t))
			t->capture = CAPTURE_MOVED;
	}
	return rc;
}

int capture_complete_registers(struct capture *c, struct snapshot *snap, struct snap_thread **threads, size_t nthreads,
			       struct err *err)
{
	struct take take = {.capture = c, .snap = snap, .err = err};
	struct held_list list = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < nthreads; i++)
		if (capture_unmoved(c, threads[i]) && !vec_push(&list, (struct held){.tid = threads[i]->tid}))
			rc = take_out_of_memory(&take);
	if (rc == 0 && list.len)
		rc = freeze_list(&take, &list, (struct hold_mode){0});
	for (size_t i = 0, k = 0; rc == 0 && i < nthreads && k < list.len; i++) {
		if (list.data[k].tid != threads[i]->tid)
			continue; /* it has run since, and was left out */
		if (list.data[k].result == HELD_STOPPED) {
			store_held(&take, &list.data[k], threads[i]);
			snap->capture.stopped_threads++;
		}
		k++;
	}
	vec_deinit(&list);
	return rc;
}
