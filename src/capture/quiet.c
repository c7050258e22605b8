/* SPDX-License-Identifier: MIT */
/* Threads that run, or have just done so: read while nobody can run on their CPUs, and proved not to have run. */
#include <errno.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/debug.h"
#include "capture/altstack.h"
#include "capture/cpus.h"
#include "capture/take.h"
#include "capture/waited.h"
#include "capture/window.h"
#include "kernel/task_iter.h"
#include "kernel/window_look.h"
#include "privilege/remedy.h"
#include "proc/task.h"

enum {
	MAX_WINDOWS = 4,        /* for one snapshot */
	HIGHEST_PRIORITY = 99,
	WINDOW_NS = 1000 * 1000,
	FIRST_BYTES = 32 << 10, /* of each stack, before any gets more: few are deeper */
	READY_BYTES = 16 << 10, /* pages of these are there before */
	THREAD_BYTES = FIRST_BYTES + WAITED_BYTES, /* room for each */
	MORE_BYTES = 4 << 20,   /* that all deeper ones together get, if there is time */
	PIECE_BYTES = 64 << 10,
	DEEP_BYTES = 1 << 20, /* of these, pages that are there before */
	RESERVE_NS = 50 * 1000, /* of the window, for the second look */
	MANY_THREADS = 2000, /* a round with more takes too long for a hurry */
	SLACK_NS = 2000, /* between the scheduler's clock and ours */
};

#define HELD_BECAUSE "threads that run are held by ptrace: "

/* What is one process's. */
struct part {
	struct take *take;
	pid_t mm_tid;
	size_t first, end; /* of its threads */
	const struct thread_reader *reader; /* or NULL */
	struct recorder_room room;
	struct bulk buffer;
	uint64_t used;
};

/* One thread that is to be taken. */
struct hasty {
	struct part *part;
	size_t at; /* in the snapshot */
	struct mem_copy stack;
	struct mem_copy interrupted;
	struct mem_copy waited;
	bool read; /* by options.reader, or there is none */
	bool checked; /* it was looked at again */
	uint64_t limit; /* of its copy, if it is deep */
};

/* What the leader works on. If it never comes back it keeps all of it. */
struct quiet {
	struct window_look *look;
	struct window_request *request;
	uint64_t opened_ns, looked_ns; /* when the window was opened, and the CPUs were taken, */
	uint64_t copied_ns, read_ns; /* and each step was done */
	struct part *parts;
	size_t nparts;
	size_t n;
	struct memory_job jobs[2 * WINDOW_THREADS]; /* of thread i its stack, and what it waits for, from 2 * i on at the earliest */
	struct hasty *owners[2 * WINDOW_THREADS];
	struct mem_copy *copies[2 * WINDOW_THREADS];
	struct hasty threads[WINDOW_THREADS];
};

/* Whoever runs, waits for a CPU, or has slept for less than a round takes. */
static bool is_hasty(const struct take *take, const struct observation *o, const struct snap_thread *t)
{
	return o->place.task && o->place.regs && !o->kernel_worker && !state_is_dead(o->state) &&
	       (o->running || o->state == 'R' || t->retakes || (o->off_cpu_ns >= 0 && (uint64_t)o->off_cpu_ns < take->recent_ns));
}

static bool may_have_windows(const struct take *take)
{
	const struct capture *c = take->capture;

	return !c->no_windows && c->options.stop == STOP_AUTO && !c->target->memory.use_proc_mem && take->windows_tried < MAX_WINDOWS;
}

static void give_back(struct take *take)
{
	for (size_t i = 0; i < take->work.len; i++)
		if (take->work.data[i] == WORK_HURRY)
			take->work.data[i] = WORK_TAKE;
}

void take_set_aside(struct take *take)
{
	const struct capture *c = take->capture;

	for (size_t i = 0; may_have_windows(take) && i < c->seen.len; i++) {
		const struct observation *o = &c->seen.data[i];
		uint64_t *slot = u64map_find(&take->index, (uint64_t)o->tid);

		/* Also who was copied asleep in an earlier round, and may get up in this one. */
		if (slot && (take->work.data[*slot] == WORK_TAKE || take->work.data[*slot] == WORK_ASLEEP) &&
		    is_hasty(take, o, &take->snap->threads.data[*slot]))
			take->work.data[*slot] = WORK_HURRY;
	}
}

static bool wants_window(const struct take *take)
{
	const struct capture *c = take->capture;

	if (take->rc < 0 || !may_have_windows(take))
		return false;
	for (size_t i = 0; i < c->seen.len; i++) {
		const uint64_t *slot = u64map_find(&take->index, (uint64_t)c->seen.data[i].tid);

		if (slot && is_hasty(take, &c->seen.data[i], &take->snap->threads.data[*slot]))
			return true;
	}
	return take->again > 0; /* what was seen last were counters only */
}

static void load_look(struct take *const *takes, size_t n)
{
	struct err why = {0};
	int rc = window_look_create(&why, takes[0]->look);

	debug_say(rc, "looking at running threads by BPF%s%s", why.msg[0] ? ": " : "", why.msg);
	for (size_t i = 0; rc < 0 && i < n; i++) {
		if (wants_window(takes[i]))
			notes_add(&takes[i]->snap->notes, HELD_BECAUSE "%s", why.msg);
		takes[i]->capture->no_windows = true;
	}
}

/*
 * On a loaded machine we would wait for a CPU in the midst of a round: for longer than threads sleep, and what was rehearsed would
 * not be in the caches any more.
 */
static void hurry(struct take *const *takes, size_t n, struct foreground *foreground)
{
	size_t threads = 0;

	for (size_t i = 0; i < n; i++)
		threads += takes[i]->capture->seen.len;
	if (threads < MANY_THREADS)
		foreground_begin(foreground);
}

bool take_prepare_window(struct take *const *takes, size_t n, struct foreground *foreground)
{
	bool wanted = false;

	for (size_t i = 0; i < n; i++)
		wanted |= wants_window(takes[i]);
	if (wanted && !*takes[0]->look)
		load_look(takes, n);
	if (!wanted || !*takes[0]->look)
		return false;
	hurry(takes, n, foreground);
	return true;
}

/* More room than the first part of each stack has, from behind that. */
static struct memory_job place(struct part *part, struct mem_copy *copy, uint64_t len)
{
	uint64_t room = part->buffer.size - part->used;

	copy->data = part->buffer.data + part->used;
	if (len > room)
		len = room;
	part->used += (len + 15) & ~UINT64_C(15);
	if (part->used > part->buffer.size)
		part->used = part->buffer.size;
	return (struct memory_job){.address = copy->start, .len = len, .dst = copy->data};
}

static bool is_readable(const struct quiet *q, size_t i)
{
	const struct task_record *record = &q->request->records[i];

	return !q->request->threads[i].gone && !(record->flags & TASK_ON_CPU) && record->flags & TASK_HAS_REGS && !record->exit_state;
}

/* Its registers, as the program that it runs has them. */
static void registers_of(const struct take *take, const struct task_record *record, struct user_regs *out)
{
	struct user_regs wide;

	task_record_registers(record, out);
	wide = *out;
	if (take->snap->arch != arch_host())
		arch_narrow_registers(take->snap->arch, arch_host(), &wide, out);
}

/* What it waits for, if it sleeps; in memory that no server has to deliver. */
static void plan_waited(struct quiet *q, size_t i)
{
	struct hasty *h = &q->threads[i];
	const struct snapshot *snap = h->part->take->snap;
	const struct task_record *record = &q->request->records[i];
	struct snap_syscall syscall = {0};

	h->waited = (struct mem_copy){0};
	if (!record->state || record->syscall_nr < 0)
		return;
	task_record_syscall(record, &syscall);
	h->waited = waited_memory(&snap->maps, arch_of_mode(arch_host(), record->regs[arch_host()->user_mode]), &syscall);
	if (h->waited.len && !memory_is_local(&h->part->take->capture->target->memory, h->waited.start, h->waited.len))
		h->waited.len = 0;
}

/* What of its stack is to be copied; memory that a server has to deliver is not. */
static bool plan_stack(struct quiet *q, size_t i)
{
	struct hasty *h = &q->threads[i];
	const struct take *take = h->part->take;
	const struct snap_thread *t = &take->snap->threads.data[h->at];
	struct user_regs regs;
	uint64_t sp;

	registers_of(take, &q->request->records[i], &regs);
	sp = regs.v[take->snap->arch->user_sp];
	h->stack = take_known_extent(take, t, sp);
	h->interrupted = (struct mem_copy){0};
	return h->stack.len && memory_is_local(&take->capture->target->memory, sp, h->stack.len);
}

static void plan_copy(struct quiet *q, size_t at, struct hasty *h, struct mem_copy *copy, uint64_t most)
{
	q->owners[at] = h;
	q->copies[at] = copy;
	q->jobs[at] = (struct memory_job){.address = copy->start, .len = copy->len < most ? copy->len : most, .dst = copy->data};
}

/*
 * The stacks of those of a range that do not run, as far as most of them go, and what they wait for; their jobs are in one piece, from
 * the range's first on. How many.
 */
static size_t plan_stacks(struct quiet *q, size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i < end; i++) {
		struct hasty *h = &q->threads[i];
		uint8_t *room = h->part->buffer.data + (i - h->part->first) * THREAD_BYTES;

		h->stack = h->waited = (struct mem_copy){0};
		if (!is_readable(q, i) || !plan_stack(q, i))
			continue;
		h->stack.data = room;
		plan_copy(q, 2 * first + n++, h, &h->stack, FIRST_BYTES);
		plan_waited(q, i);
		h->waited.data = room + FIRST_BYTES;
		if (h->waited.len)
			plan_copy(q, 2 * first + n++, h, &h->waited, WAITED_BYTES);
	}
	return n;
}

/* Jobs of one process after the other. False: the work was abandoned. */
static bool copy_jobs(struct quiet *q, size_t first, size_t end)
{
	for (size_t i = first, next; i < end; i = next) {
		const struct part *part = q->owners[i]->part;

		for (next = i; next < end && q->owners[next]->part == part; next++)
			;
		window_block();
		memory_copy_now(part->mm_tid, q->jobs + i, next - i);
		if (!window_go_on())
			return false;
	}
	return true;
}

/* The first share is never the smaller one. */
static size_t share_start(const struct quiet *q, unsigned share, unsigned of)
{
	return (q->n * share + of - 1) / of;
}

/* The registers of one share of them. */
static bool look_share(void *arg, unsigned share, unsigned of)
{
	struct quiet *q = arg;
	size_t first = share_start(q, share, of), end = share_start(q, share + 1, of);
	const struct window_range range = {.first = (uint32_t)first, .count = (uint32_t)(end - first)};

	if (first < end)
		window_look_run(q->look, &range); /* who is not seen is gone: see rehearse() */
	return true;
}

/* When all were looked at, and not before: then what one waits for is read while its owner stands still. All in one call. */
static bool copy_share(void *arg, unsigned share, unsigned of)
{
	struct quiet *q = arg;
	size_t first = share_start(q, share, of), end = share_start(q, share + 1, of), n;

	n = plan_stacks(q, first, end);
	if (!copy_jobs(q, 2 * first, 2 * first + n))
		return false;
	for (size_t i = 2 * first; i < 2 * first + n; i++)
		memory_job_finish(&q->jobs[i], q->copies[i]);
	return true;
}

static bool check_share(void *arg, unsigned share, unsigned of)
{
	struct quiet *q = arg;
	size_t first = share_start(q, share, of), end = share_start(q, share + 1, of);
	const struct window_range range = {.first = (uint32_t)first, .count = (uint32_t)(end - first), .again = 1};

	if (first < end && window_look_run(q->look, &range) == 0)
		for (size_t i = first; i < end; i++)
			q->threads[i].checked = true;
	return true;
}

/* Pages for those that are deep, or run, so that it is not known. Linux 5.14; before that they are made in the window. */
static void prepare_deep(const struct quiet *q, const struct part *part)
{
	uint64_t bytes = 0;

	for (size_t i = part->first; i < part->end; i++)
		if (!is_readable(q, i) || q->threads[i].stack.region_end - q->threads[i].stack.start > FIRST_BYTES)
			bytes += DEEP_BYTES;
	if (bytes)
		madvise(part->buffer.data + part->used, bytes < MORE_BYTES ? bytes : MORE_BYTES, MADV_POPULATE_WRITE);
}

/*
 * The same, before anybody is kept waiting for it: what comes out is of no use, but then much of it is in this CPU's caches.
 */
static void rehearse(struct quiet *q)
{
	const struct window_range range = {.count = (uint32_t)q->n};
	const bool looked = window_look_run(q->look, &range) == 0;

	for (size_t i = 0; looked && i < q->nparts; i++) {
		const struct part *part = &q->parts[i];

		memory_copy(&part->take->capture->target->memory, q->jobs + 2 * part->first, plan_stacks(q, part->first, part->end));
	}
	for (size_t i = 0; i < q->nparts; i++)
		prepare_deep(q, &q->parts[i]);
	for (size_t i = 0; i < q->n; i++) {
		q->request->threads[i].gone = 1; /* until it is seen in the window */
		q->threads[i].stack = (struct mem_copy){0};
	}
}

/* More of one stack, behind what is there. False: the work was abandoned. */
static bool copy_piece(struct hasty *h, uint64_t most)
{
	uint64_t left = h->stack.region_end - h->stack.start - h->stack.len;
	struct memory_job job = {
		.address = h->stack.start + h->stack.len,
		.len = left < PIECE_BYTES ? left : PIECE_BYTES,
		.dst = h->stack.data + h->stack.len,
	};

	if (job.len > most - h->stack.len)
		job.len = most - h->stack.len;
	window_block();
	memory_copy_now(h->part->mm_tid, &job, 1);
	if (!window_go_on())
		return false;
	h->stack.len += job.done;
	if (job.done < job.len)
		h->stack.region_end = h->stack.start + h->stack.len;
	return true;
}

static bool is_deep(const struct hasty *h)
{
	return h->stack.len >= FIRST_BYTES && h->stack.start + h->stack.len < h->stack.region_end;
}

/*
 * Those that are deeper, or seem to be, since they lie in a large mapping: piece by piece in turn, as long as there is time. Each has
 * an equal part of the room.
 */
static bool copy_deep(struct quiet *q, uint64_t until)
{
	uint64_t most, deep = 0;

	for (size_t i = 0; i < q->n; i++)
		deep += is_deep(&q->threads[i]);
	most = deep ? MORE_BYTES / deep / PIECE_BYTES * PIECE_BYTES : 0;
	for (size_t i = 0; i < q->n; i++) {
		struct hasty *h = &q->threads[i];
		const uint64_t allowed = h->part->take->capture->options.stack_size;
		const uint8_t *begun = h->stack.data;

		h->limit = most < allowed ? most : allowed;
		if (!is_deep(h) || h->limit <= h->stack.len || h->limit > h->part->buffer.size - h->part->used)
			h->limit = h->stack.len; /* it stays where it is */
		else
			memcpy(place(h->part, &h->stack, h->limit).dst, begun, h->stack.len);
	}
	for (bool any = true; any;) {
		any = false;
		for (size_t i = 0; i < q->n; i++) {
			struct hasty *h = &q->threads[i];

			if (!is_deep(h) || h->stack.len >= h->limit)
				continue;
			if (monotonic_ns() >= until)
				return true;
			if (!copy_piece(h, h->limit))
				return false;
			any = true;
		}
	}
	return true;
}

/* The ordinary stacks of those that are in a signal handler on another. */
static bool copy_interrupted(struct quiet *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++) {
		struct hasty *h = &q->threads[i];
		const struct snapshot *snap = h->part->take->snap;
		const struct task_record *record = &q->request->records[i];
		const struct altstack alt = {.known = true, .start = record->altstack_start, .len = record->altstack_len};

		if (!h->stack.len || !altstack_interrupted(snap->arch, &snap->maps, &alt, &h->stack, FIRST_BYTES, &h->interrupted))
			continue;
		q->jobs[n] = place(h->part, &h->interrupted, h->interrupted.len);
		q->owners[n++] = h;
	}
	if (!copy_jobs(q, 0, n))
		return false;
	for (size_t i = 0; i < n; i++)
		memory_job_finish(&q->jobs[i], &q->owners[i]->interrupted);
	return true;
}

/* What language runtimes want; what there is no time for is taken again. */
static void read_more(struct quiet *q, uint64_t until)
{
	for (size_t i = 0; i < q->n; i++) {
		struct hasty *h = &q->threads[i];
		struct part *part = h->part;
		pid_t tid = part->take->snap->threads.data[h->at].tid;
		struct thread_recorder recorder;
		struct user_regs regs;

		h->read = !part->reader || !h->stack.len;
		if (h->read || monotonic_ns() + RESERVE_NS >= until)
			continue;
		registers_of(part->take, &q->request->records[i], &regs);
		thread_recorder_init(&recorder, &part->take->capture->target->memory, &part->room, tid, &h->stack, &h->interrupted);
		part->reader->read(part->reader->arg, tid, &regs, &recorder.mem);
		h->read = true;
	}
}

/* In the leader, while the CPUs are taken: no allocation, no file, no output. */
static bool work(void *arg, uint64_t opened_ns, uint64_t until)
{
	struct quiet *q = arg;

	q->opened_ns = opened_ns;
	q->looked_ns = monotonic_ns();
	if (!window_share(look_share, q) || !window_share(copy_share, q))
		return false;
	q->copied_ns = monotonic_ns();
	if (!copy_deep(q, opened_ns + (until - opened_ns) / 2) || !copy_interrupted(q))
		return false;
	read_more(q, until);
	q->read_ns = monotonic_ns();
	if (!window_share(check_share, q))
		return false;
	for (size_t i = 0; i < q->n; i++)
		if (!q->threads[i].checked) /* the window is over, but that matters no more */
			return check_share(q, 0, 1);
	return true;
}

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
	const size_t n = part->end - part->first, size = n * THREAD_BYTES + MORE_BYTES;

	part->buffer.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (part->buffer.data == MAP_FAILED) {
		part->buffer.data = NULL;
		return false;
	}
	part->buffer.size = size;
	part->used = n * THREAD_BYTES;
	for (size_t i = 0; i < n; i++) {
		for (size_t at = 0; at < READY_BYTES; at += 4096)
			part->buffer.data[i * THREAD_BYTES + at] = 0;
		part->buffer.data[i * THREAD_BYTES + FIRST_BYTES] = 0;
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

	if (!is_readable(q, i) || !h->checked || q->request->threads[i].moved || !h->read || !h->stack.len || is_cut(h))
		return WORK_TAKE;
	observation_of_record(record, false, &o);
	registers_of(take, record, &o.regs);
	if (!take_unmoved(&o, t))
		t->nkernel = 0; /* it has run since that was taken */
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
			notes_add(&take->snap->notes, HELD_BECAUSE "%s", why);
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
	rehearse(q);
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
	struct window_plan plan = {.priority = 1, .work = work, .lingers = options->window_lingers,
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
		give_back(takes[i]);
	}
	return had_window;
}
