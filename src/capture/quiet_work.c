/* SPDX-License-Identifier: MIT */
/* What is done while the CPUs are taken, by the leader and its helpers, and its rehearsal. */
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "capture/altstack.h"
#include "capture/quiet.h"
#include "capture/window.h"

enum {
	PIECE_BYTES = 64 << 10,
	DEEP_BYTES = 1 << 20, /* of these, pages that are there before */
	RESERVE_NS = 50 * 1000, /* of the window, for the second look */
};

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

bool quiet_is_readable(const struct quiet *q, size_t i)
{
	const struct task_record *record = &q->request->records[i];

	return !q->request->threads[i].gone && !(record->flags & TASK_ON_CPU) && record->flags & TASK_HAS_REGS && !record->exit_state;
}

void quiet_registers(const struct take *take, const struct task_record *record, struct user_regs *out)
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
	if (!record->state || record->syscall_nr < 0 || h->part->take->capture->options.no_waits)
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

	quiet_registers(take, &q->request->records[i], &regs);
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
		uint8_t *room = h->part->buffer.data + (i - h->part->first) * QUIET_THREAD_BYTES;

		h->stack = h->waited = (struct mem_copy){0};
		if (!quiet_is_readable(q, i))
			continue;
		if (!plan_stack(q, i)) {
			h->stack.len = 0; /* nobody has copied it */
			continue;
		}
		h->stack.data = room;
		plan_copy(q, 2 * first + n++, h, &h->stack, QUIET_FIRST_BYTES);
		plan_waited(q, i);
		h->waited.data = room + QUIET_FIRST_BYTES;
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
		window_look_run(q->look, &range); /* who is not seen is gone: see quiet_rehearse() */
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
		if (!quiet_is_readable(q, i) || q->threads[i].stack.region_end - q->threads[i].stack.start > QUIET_FIRST_BYTES)
			bytes += DEEP_BYTES;
	if (bytes)
		madvise(part->buffer.data + part->used, bytes < QUIET_MORE_BYTES ? bytes : QUIET_MORE_BYTES, MADV_POPULATE_WRITE);
}

void quiet_rehearse(struct quiet *q)
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
	return h->stack.len >= QUIET_FIRST_BYTES && h->stack.start + h->stack.len < h->stack.region_end;
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
	most = deep ? QUIET_MORE_BYTES / deep / PIECE_BYTES * PIECE_BYTES : 0;
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

		if (!h->stack.len || !altstack_interrupted(snap->arch, &snap->maps, &alt, &h->stack, QUIET_FIRST_BYTES, &h->interrupted))
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
		quiet_registers(part->take, &q->request->records[i], &regs);
		thread_recorder_init(&recorder, &part->take->capture->target->memory, &part->room, tid, &h->stack, &h->interrupted);
		part->reader->read(part->reader->arg, tid, &regs, &recorder.mem);
		h->read = true;
	}
}

bool quiet_work(void *arg, uint64_t opened_ns, uint64_t until)
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
