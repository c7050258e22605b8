/* SPDX-License-Identifier: MIT */
#include "report/why.h"

#include <stdlib.h>

#include "base/order.h"
#include "report/wait_words.h"

enum { LONGEST_CHAIN = 16 };

/* By what it waits for; else by the system call that it is in, or its state. */
static int compare_waits(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct snap_syscall *in = &a->thread->syscall, *other = &b->thread->syscall;
	int order = wait_compare(a, b);

	if (!order && !a->wait.kind && !b->wait.kind)
		order = COMPARE(a->thread->state, b->thread->state);
	if (!order && !a->wait.kind && !b->wait.kind && a->thread->state != 'R')
		order = COMPARE(in->state == SYSCALL_IN ? in->nr + 1 : 0, other->state == SYSCALL_IN ? other->nr + 1 : 0);
	return order;
}

static int compare_members(const void *a, const void *b)
{
	const struct trace_thread *x = *(const struct trace_thread *const *)a, *y = *(const struct trace_thread *const *)b;
	int order = compare_waits(x, y);

	return order ? order : COMPARE(x->thread->tid, y->thread->tid);
}

static unsigned chain_behind(const struct trace_thread *t, const struct trace *const *traces, size_t ntraces)
{
	unsigned n = 0;

	while (t && t->wait.kind && n < LONGEST_CHAIN) {
		t = wait_find_owner(&t->wait, traces, ntraces);
		n += t != NULL;
	}
	return n;
}

static int compare_groups(const void *a, const void *b)
{
	const struct why_group *x = a, *y = b;

	if (x->chain != y->chain)
		return x->chain < y->chain ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return COMPARE(x->first, y->first);
}

bool why_groups_init(struct why_groups *groups, const struct trace *const *traces, size_t ntraces, const struct deadlocks *deadlocks)
{
	size_t n = 0;

	for (size_t i = 0; i < ntraces; i++)
		n += traces[i]->threads.len;
	groups->members = malloc((n + 1) * sizeof(*groups->members));
	if (!groups->members)
		return false;
	for (size_t i = 0; i < ntraces; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++)
			if (!deadlocks_with(deadlocks, &traces[i]->threads.data[k]))
				groups->members[groups->n++] = &traces[i]->threads.data[k];
	n = groups->n;
	qsort(groups->members, n, sizeof(*groups->members), compare_members);
	for (size_t i = 0, next; i < n; i = next) {
		struct why_group group = {.first = i, .chain = chain_behind(groups->members[i], traces, ntraces)};

		for (next = i + 1; next < n && compare_waits(groups->members[i], groups->members[next]) == 0; next++)
			;
		group.count = next - i;
		if (!vec_push(groups, group))
			return false;
	}
	if (groups->len)
		qsort(groups->data, groups->len, sizeof(*groups->data), compare_groups);
	return true;
}

void why_groups_deinit(struct why_groups *groups)
{
	vec_deinit(groups);
	free(groups->members);
}

static bool is_of_go(const struct wait *w)
{
	return (w->kind >= WAIT_GO_WORK && w->kind <= WAIT_GO_NOTE) || w->for_goroutines;
}

const char *why_limits(const struct trace *const *traces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++)
			if (is_of_go(&traces[i]->threads.data[k].wait))
				return "goroutines that wait have no thread: what they wait for is not seen, nor is a deadlock among them";
	return NULL;
}
