/* SPDX-License-Identifier: MIT */
#include "report/group.h"

#include <errno.h>

enum rank {
	RANK_RUNNING,
	RANK_UNINTERRUPTIBLE,
	RANK_MAIN,
	RANK_OTHER,
	RANK_ENDED,
};

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_syscalls(const struct snap_syscall *a, const struct snap_syscall *b)
{
	int c = COMPARE(a->state, b->state);

	return c || a->state != SYSCALL_IN ? c : COMPARE(a->nr, b->nr);
}

/*
 * 0 for threads that are shown as one. Threads with equal raw stacks share the named stack, so comparing addresses is
 * enough. Threads that were held or could not be captured differ in what there is to say about them.
 */
static int compare_content(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct snap_thread *s = a->thread, *t = b->thread;
	int c = COMPARE(s->state, t->state);

	c = c ? c : COMPARE(s->status, t->status);
	c = c ? c : COMPARE(s->capture, t->capture);
	c = c ? c : COMPARE((uintptr_t)s->why, (uintptr_t)t->why);
	c = c ? c : COMPARE(s->tracer, t->tracer);
	c = c ? c : compare_syscalls(&s->syscall, &t->syscall);
	c = c ? c : COMPARE((uintptr_t)a->kernel, (uintptr_t)b->kernel);
	c = c ? c : COMPARE((uintptr_t)a->user, (uintptr_t)b->user);
	c = c ? c : COMPARE(a->raw.end, b->raw.end);
	return c ? c : COMPARE(a->raw.end_pc, b->raw.end_pc);
}

static int compare_members(const void *a, const void *b)
{
	const struct trace_thread *const *x = a, *const *y = b;
	int c = compare_content(*x, *y);

	return c ? c : COMPARE((*x)->thread->tid, (*y)->thread->tid);
}

static enum rank rank_of(const struct snap_thread *thread, pid_t pid)
{
	if (thread->status == THREAD_EXITED || thread->status == THREAD_ZOMBIE)
		return RANK_ENDED;
	if (thread->state == 'R')
		return RANK_RUNNING;
	if (thread->state == 'D')
		return RANK_UNINTERRUPTIBLE;
	return thread->tid == pid ? RANK_MAIN : RANK_OTHER;
}

struct order {
	const struct groups *groups;
	pid_t pid;
};

static enum rank group_rank(const struct order *order, const struct group *group)
{
	enum rank best = RANK_ENDED;

	for (size_t i = 0; i < group->count; i++) {
		enum rank rank = rank_of(order->groups->members[group->first + i]->thread, order->pid);

		best = rank < best ? rank : best;
	}
	return best;
}

static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct group *x = a, *y = b;
	const struct order *order = arg;
	int c = COMPARE(group_rank(order, x), group_rank(order, y));

	c = c ? c : COMPARE(x->count, y->count);
	return c ? c
		 : COMPARE(order->groups->members[x->first]->thread->tid,
			   order->groups->members[y->first]->thread->tid);
}

int groups_init(struct groups *groups, const struct trace *trace, bool merge)
{
	size_t n = trace->threads.len;
	struct order order = {.groups = groups, .pid = trace->snap->pid};

	*groups = (struct groups){.members = calloc(n ? n : 1, sizeof(*groups->members))};
	if (!groups->members || !vec_reserve(groups, n ? n : 1)) {
		groups_deinit(groups);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		groups->members[i] = &trace->threads.data[i];
	if (merge)
		qsort(groups->members, n, sizeof(*groups->members), compare_members);
	for (size_t i = 0; i < n; i++) {
		struct group *last = groups->len ? &groups->data[groups->len - 1] : NULL;

		if (merge && last && compare_content(groups->members[last->first], groups->members[i]) == 0)
			last->count++;
		else
			groups->data[groups->len++] = (struct group){.first = i, .count = 1};
	}
	qsort_r(groups->data, groups->len, sizeof(*groups->data), compare_groups, &order);
	return 0;
}

void groups_deinit(struct groups *groups)
{
	free(groups->members);
	groups->members = NULL;
	vec_deinit(groups);
}
