/* SPDX-License-Identifier: MIT */
/* Threads that run, or have just done so: read while nobody can run on their CPUs, and proved not to have run. */
#include "capture/quiet.h"

#include <errno.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/debug.h"
#include "capture/cpus.h"
#include "capture/window.h"
#include "privilege/remedy.h"

enum {
	HIGHEST_PRIORITY = 99,
	WINDOW_NS = 1000 * 1000,
	READY_BYTES = 16 << 10, /* of each stack, pages that are there before */
	SLACK_NS = 2000, /* between the scheduler's clock and ours */
};

static void list_hasty(struct quiet *q, struct part *part, cpu_set_t *seen, int *priority)
{
	struct take *take = part->take;

	part->first = q->n;
	for (size_t i = 0; i < take->capture->seen.len && q->n < WINDOW_THREADS; i++) {
		const struct observation *o = &take->capture->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);

		if (!slot || take->work.data[*slot] != WORK_HURRY)
			continue;
		if (o->place.cpu < CPU_SETSIZE)
			CPU_SET(o->place.cpu, seen);
		if (o->place.rt_priority >= *priority)
			*priority = o->place.rt_priority + 1;
		q->threads[q->n] = (struct hasty){.part = part, .at = (size_t)*slot};
		q->request->records[q->n] = (struct task_record){0};
		q->request->threads[q->n++] =
			(struct window_thread){.task = o->place.task, .regs = o->place.regs, .start_ns = o->place.start_ns};
	}
	part->end = q->n;
}

/* Pages that are there, and stay: none is to be made while the CPUs are taken. */
static bool make_room(struct part *part)
{
	const struct capture *c = part->take->capture;
	const size_t n = part->end - part->first, size = n * QUIET_THREAD_BYTES + QUIET_MORE_BYTES;

	part->buffer.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (part->buffer.data == MAP_FAILED) {
		part->buffer.data = NULL;
		return false;
	}
	part->buffer.size = size;
	part->used = n * QUIET_THREAD_BYTES;
	for (size_t i = 0; i < n; i++) {
		for (size_t at = 0; at < READY_BYTES; at += 4096)
			part->buffer.data[i * QUIET_THREAD_BYTES + at] = 0;
		part->buffer.data[i * QUIET_THREAD_BYTES + QUIET_FIRST_BYTES] = 0;
	}
	mlock2(part->buffer.data, part->used, MLOCK_ONFAULT); /* if it is allowed */
	if (c->reads && n && take_add_room(part->take, n, &part->room))
		part->reader = c->options.reader;
	else if (c->reads && n)
		take_do_without(part->take);
	return vec_reserve(&part->take->snap->bulk, part->take->snap->bulk.len + 1);
}

static void keep_buffer(struct part *part)
{
	munlock(part->buffer.data, part->buffer.size);
	vec_push(&part->take->snap->bulk, part->buffer); /* there is room: see make_room() */
	part->buffer.data = NULL;
}

/* It had a CPU until we took it. Then what the kernel did since is not its doing. */
static bool was_running(const struct quiet *q, const struct observation *o)
{
	return o->state == 'R' && (o->off_cpu_ns < 0 || (uint64_t)o->off_cpu_ns <= q->looked_ns - q->opened_ns + SLACK_NS);
}

/*
 * There was no time for all of its stack: one that ends within what may be copied is held in the end. Others, in a mapping of much
 * else, are hardly ever that deep.
 */
static bool is_cut(const struct hasty *h)
{
	return h->stack.start + h->stack.len < h->stack.region_end &&
	       h->stack.region_end - h->stack.start <= h->part->take->capture->options.stack_size;
}

/* Writes what the window gave into the snapshot. */
static enum work store(struct quiet *q, size_t i)
{
	struct hasty *h = &q->threads[i];
	struct take *take = h->part->take;
	const struct task_record *record = &q->request->records[i];
	struct snap_thread *t = &take->snap->threads.data[h->at];
	struct observation o;

	if (!quiet_is_readable(q, i) || !h->checked || q->request->threads[i].moved || !h->read || !h->stack.len || is_cut(h))
		return WORK_TAKE;
	observation_of_record(record, false, &o);
	quiet_registers(take, record, &o.regs);
	if (!take_unmoved(&o, t)) { /* it has run since that was taken */
		t->nkernel = 0;
		t->facts.timer_ns = NO_TIMER;
	}
	t->state = o.state;
	t->nvcsw = o.nvcsw;
	t->nivcsw = o.nivcsw;
	t->runs = o.runs;
	t->has_runs = o.has_runs;
	t->off_cpu_ns = o.off_cpu_ns;
	t->cpu_ns = o.cpu_ns;
	t->syscall = o.syscall;
	t->regs = o.regs;
	t->altstack = o.altstack;
	t->stack = h->stack;
	t->interrupted = h->interrupted;
	t->waited = h->waited;
	t->still = STILL_IN_WINDOW;
	t->read_in = t->still_in = take->passes;
	t->woken = false;
	t->capture = CAPTURE_QUIET;
	t->status = THREAD_CAPTURED;
	t->why = NULL;
	if (was_running(q, &o)) {
		t->off_cpu_ns = -1;
		t->nkernel = 0;
	}
	return WORK_QUIET;
}

static void count_window(struct take *take, const struct window_result *result)
{
	struct capture_info *info = &take->snap->capture;

	info->windows++;
	if (result->length_ns > info->window_ns)
		info->window_ns = result->length_ns;
	if (result->taken > info->cpus_taken)
		info->cpus_taken = result->taken;
}

/* What the window gave one process. */
static int store_part(struct quiet *q, struct part *part)
{
	struct take *take = part->take;
	const bool is_same = memory_has_number(&take->capture->target->process);

	if (part->first == part->end)
		return 0;
	for (size_t i = part->first; is_same && i < part->end; i++)
		take->work.data[q->threads[i].at] = store(q, i);
	keep_buffer(part);
	return part->reader ? take_keep_room(take, &part->room, true) : 0;
}

static void say_times(const struct quiet *q)
{
	size_t missed = 0;

	for (size_t i = 0; i < q->n; i++)
		missed += q->threads[i].part->take->work.data[q->threads[i].at] != WORK_QUIET;
	debug_say(0, "%zu threads, %zu not taken: CPUs %.1f µs, registers and stacks %.1f, runtimes and the rest %.1f", q->n, missed,
		  (double)(q->looked_ns - q->opened_ns) / 1e3, (double)(q->copied_ns - q->looked_ns) / 1e3,
		  (double)(q->read_ns - q->copied_ns) / 1e3);
}

/* Why there is no window, once. */
static void do_without(struct quiet *q, const char *why)
{
	for (size_t i = 0; i < q->nparts; i++) {
		struct take *take = q->parts[i].take;

		take->capture->no_windows = true;
		if (q->parts[i].first < q->parts[i].end)
			notes_add(&take->snap->notes, QUIET_HELD_BECAUSE "%s", why);
	}
}

static void do_without_priority(struct quiet *q)
{
	char help[REMEDY_SIZE], why[REMEDY_SIZE + 100];

	snprintf(why, sizeof(why), "taking their CPUs for a moment instead was refused: %s", remedy(REFUSED_REALTIME, help));
	do_without(q, why);
}

static int run(struct quiet *q, const struct window_plan *plan)
{
	struct window_result result;
	int64_t instant;
	int rc;

	for (size_t i = 0; i < q->nparts; i++)
		memory_hold(&q->parts[i].take->capture->target->memory);
	rc = window_run(plan, &result);
	for (size_t i = 0; i < q->nparts; i++)
		memory_release(&q->parts[i].take->capture->target->memory);
	debug_say(rc, "window on %d CPUs", CPU_COUNT(&plan->cpus));
	if (rc == -EPERM)
		do_without_priority(q);
	else if (rc == -ETIMEDOUT)
		do_without(q, "memory of the process does not answer");
	else if (rc < 0)
		do_without(q, "their CPUs could not be taken");
	if (rc < 0)
		return rc;
	instant = (int64_t)(clock_ns(CLOCK_REALTIME) - (monotonic_ns() - q->copied_ns)); /* all had been seen, none again */
	for (size_t i = 0; i < q->nparts; i++) {
		struct part *part = &q->parts[i];

		count_window(part->take, &result);
		part->take->rc = store_part(q, part);
		part->take->snap->capture.instant_ns = instant;
	}
	say_times(q);
	return 0;
}

static bool plan_window(struct quiet *q, struct window_plan *plan)
{
	struct take *first = q->parts[0].take;
	struct cpu_rules rules;

	for (size_t i = 0; i < q->nparts; i++)
		list_hasty(q, &q->parts[i], &first->cpus, &plan->priority);
	if (!q->n)
		return false;
	if (q->n == WINDOW_THREADS) {
		do_without(q, "they are too many");
		return false;
	}
	if (!cpu_rules_read(&rules)) {
		do_without(q, "this machine has too many CPUs");
		return false;
	}
	if (plan->priority > HIGHEST_PRIORITY) {
		do_without(q, "one of them has the highest priority");
		return false;
	}
	if (!cpus_choose(&rules, &first->cpus, first->windows_tried > 1, &plan->cpus)) {
		do_without(q, "they run on CPUs that this process may not use");
		return false;
	}
	for (size_t i = 0; i < q->nparts; i++)
		if (q->parts[i].first < q->parts[i].end && !make_room(&q->parts[i]))
			return false;
	quiet_rehearse(q);
	for (size_t i = 0; i < q->nparts; i++) {
		if (!q->parts[i].take->capture->target->memory.use_proc_mem)
			continue;
		do_without(q, "their memory can only be read through /proc/PID/mem");
		return false;
	}
	return true;
}

static void destroy(struct quiet *q)
{
	for (size_t i = 0; i < q->nparts; i++) {
		if (q->parts[i].buffer.data)
			munmap(q->parts[i].buffer.data, q->parts[i].buffer.size);
		free(q->parts[i].room.copies);
	}
	free(q->parts);
	free(q);
}

static struct quiet *create(struct take *const *takes, size_t n)
{
	struct quiet *q = calloc(1, sizeof(*q));
	struct part *parts = calloc(n, sizeof(*parts));

	if (!q || !parts) {
		free(q);
		free(parts);
		return NULL;
	}
	q->parts = parts;
	q->look = *takes[0]->look;
	q->request = window_look_request(q->look);
	for (size_t i = 0; i < n; i++)
		if (takes[i]->rc == 0)
			q->parts[q->nparts++] = (struct part){.take = takes[i], .mm_tid = takes[i]->capture->target->process.mm_tid};
	return q;
}

static bool any_hasty(struct take *const *takes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; takes[i]->rc == 0 && k < takes[i]->work.len; k++)
			if (takes[i]->work.data[k] == WORK_HURRY)
				return true;
	return false;
}

static bool try_window(struct take *const *takes, size_t n)
{
	const struct capture_options *options = &takes[0]->capture->options;
	struct window_plan plan = {.priority = 1, .work = quiet_work, .lingers = options->window_lingers,
				   .most_ns = options->window_ns ? options->window_ns : WINDOW_NS};
	struct quiet *q = create(takes, n);
	int rc = -EAGAIN;

	if (!q)
		return false;
	plan.arg = q;
	if (plan_window(q, &plan))
		rc = run(q, &plan);
	if (rc == -ETIMEDOUT)
		*takes[0]->look = NULL; /* it may still use that, and the rest */
	else
		destroy(q);
	return rc == 0;
}

bool take_quiet(struct take *const *takes, size_t n)
{
	const int64_t now = (int64_t)clock_ns(CLOCK_REALTIME);
	bool had_window;

	for (size_t i = 0; i < n; i++)
		takes[i]->snap->capture.instant_ns = now; /* between the two passes of each */
	if (!any_hasty(takes, n))
		return false;
	had_window = try_window(takes, n);
	for (size_t i = 0; i < n; i++) {
		takes[i]->windows_tried += had_window;
		take_give_back(takes[i]);
	}
	return had_window;
}
