/* SPDX-License-Identifier: MIT */
#include "report/watch.h"

#include <stdlib.h>

#include "base/order.h"
#include "report/text_table.h"
#include "report/wait_words.h"

/* What it waits for is another thread's, or of the kernel, which does not let it be interrupted; or it was stopped. */
static bool is_blocked(const struct trace_thread *t)
{
	switch (t->wait.kind) {
	case WAIT_MUTEX:
	case WAIT_READ_LOCK:
	case WAIT_WRITE_LOCK:
	case WAIT_ONCE:
	case WAIT_STREAM:
	case WAIT_FILE_LOCK:
	case WAIT_FROZEN:
	case WAIT_GIL:
	case WAIT_PYTHON_LOCK:
	case WAIT_PYTHON_RLOCK:
	case WAIT_MONITOR:
	case WAIT_JAVA_LOCK:
		return true;
	default:
		return t->thread->state == 'D' || t->thread->state == 'T' || t->thread->state == 't';
	}
}

static enum watch_section section_of(const struct watched_thread *t)
{
	switch (t->verdict) {
	case WATCH_STUCK:
		return is_blocked(t->traced) ? WATCH_SECTION_BLOCKED : WATCH_SECTION_WAITING;
	case WATCH_HALTED:
		return WATCH_SECTION_HALTED;
	case WATCH_LOOPS:
		return WATCH_SECTION_LOOPS;
	case WATCH_MOVES:
		return WATCH_SECTION_MOVES;
	case WATCH_UNKNOWN:
		return is_blocked(t->traced) ? WATCH_SECTION_BLOCKED : WATCH_SECTION_WAITING;
	default:
		return WATCH_SECTION_BUSY;
	}
}

/*
 * Who waits for the same lock is told of together, wherever it was asked for; who only waits for something to happen, if it does that
 * in the same place, even if each waits for something of its own.
 */
static int compare_waits(const struct watched_thread *a, const struct watched_thread *b)
{
	if (!a->traced->wait.kind != !b->traced->wait.kind) /* what is known comes first */
		return a->traced->wait.kind ? -1 : 1;
	if (section_of(a) == WATCH_SECTION_BLOCKED)
		return wait_compare(a->traced, b->traced);
	if (a->traced->wait.timed != b->traced->wait.timed)
		return a->traced->wait.timed ? 1 : -1;
	return COMPARE(a->traced->wait.kind, b->traced->wait.kind);
}

/* Threads that were in several places are told of one by one. */
static bool stands_alone(const struct watched_thread *t)
{
	return t->verdict == WATCH_BUSY || t->verdict == WATCH_MOVES;
}

static int compare_content(const struct watched_thread *a, const struct watched_thread *b)
{
	const struct snap_syscall *in = &a->traced->thread->syscall, *other = &b->traced->thread->syscall;
	int order = COMPARE(section_of(a), section_of(b));

	if (!order && stands_alone(a))
		order = COMPARE(watch_cpu_share(b), watch_cpu_share(a));
	if (!order && stands_alone(a) && a != b)
		order = a->pid != b->pid ? COMPARE(a->pid, b->pid) : COMPARE(a->tid, b->tid);
	if (!order)
		order = compare_waits(a, b);
	if (!order && section_of(a) == WATCH_SECTION_HALTED)
		order = COMPARE(b->still, a->still);
	if (!order)
		order = COMPARE(a->last.state, b->last.state);
	if (!order)
		order = COMPARE(in->state == SYSCALL_IN ? in->nr + 1 : 0, other->state == SYSCALL_IN ? other->nr + 1 : 0);
	return order ? order : COMPARE(a->last.stack, b->last.stack);
}

static int compare_members(const void *a, const void *b)
{
	const struct watched_thread *x = *(const struct watched_thread *const *)a, *y = *(const struct watched_thread *const *)b;
	int order = compare_content(x, y);

	if (!order)
		order = wait_compare(x->traced, y->traced); /* so that equal ones are neighbours */
	if (!order)
		order = COMPARE(x->pid, y->pid);
	return order ? order : COMPARE(x->tid, y->tid);
}

/* Of a section the program's own first, then the largest groups; threads that stand alone are in their order. */
static int compare_groups(const void *a, const void *b)
{
	const struct watch_group *x = a, *y = b;
	int order = COMPARE(x->section, y->section);

	if (!order && x->section < WATCH_SECTION_MOVES)
		order = COMPARE(y->program, x->program);
	if (!order)
		order = COMPARE(y->count, x->count);
	return order ? order : COMPARE(x->first, y->first);
}

static void list_members(struct watch_groups *groups, const struct watch_log *watch, const struct deadlocks *deadlocks, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < watch->threads.len; i++) {
		const struct watched_thread *t = &watch->threads.data[i];

		if ((t->verdict != WATCH_UNKNOWN || watch->rounds == 1) && t->traced && !(deadlocks && deadlocks_with(deadlocks, t->traced)))
			groups->members[(*n)++] = t;
	}
}

bool watch_groups_init(struct watch_groups *groups, const struct watch_log *watch, const struct deadlocks *deadlocks)
{
	size_t n;

	*groups = (struct watch_groups){.members = malloc((watch->threads.len + 1) * sizeof(*groups->members))};
	if (!groups->members)
		return false;
	list_members(groups, watch, deadlocks, &n);
	qsort(groups->members, n, sizeof(*groups->members), compare_members);
	for (size_t i = 0, next; i < n; i = next) {
		struct watch_group group = {.section = section_of(groups->members[i]), .first = i, .share = -1};

		group.program = text_table_program(groups->members[i]->traced->user) != NULL;

		for (next = i; next < n && (next == i || compare_content(groups->members[i], groups->members[next]) == 0); next++) {
			int64_t share = watch_cpu_share(groups->members[next]);

			if (share >= 0)
				group.share = share + (group.share < 0 ? 0 : group.share);
		}
		group.count = next - i;
		if (!vec_push(groups, group))
			return false;
	}
	if (groups->len)
		qsort(groups->data, groups->len, sizeof(*groups->data), compare_groups);
	return true;
}

void watch_groups_deinit(struct watch_groups *groups)
{
	vec_deinit(groups);
	free(groups->members);
	groups->members = NULL;
}
