/* SPDX-License-Identifier: MIT */
#include "report/task_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* 0 for tasks that are shown as one. Those of two processes never have the same stack. */
static int compare_content(const struct trace_task *a, const struct trace_task *b)
{
	int c = COMPARE(a->state, b->state);

	c = c ? c : COMPARE((uintptr_t)a->stack, (uintptr_t)b->stack);
	c = c ? c : compare_texts(a->library, b->library);
	c = c ? c : compare_texts(a->awaits, b->awaits);
	c = c ? c : compare_texts(a->through, b->through);
	return c ? c : compare_texts(a->problem, b->problem);
}

/* "Task-9" comes before "Task-10"; else they are in the order in which they were told. */
static int compare_names(const struct trace_task *a, const struct trace_task *b)
{
	int c = a->name && b->name ? strverscmp(a->name, b->name) : COMPARE(!a->name, !b->name);

	return c ? c : COMPARE(a, b);
}

static int compare_members(const void *a, const void *b)
{
	const struct trace_task *const *x = a, *const *y = b;
	int c = compare_content(*x, *y);

	return c ? c : compare_names(*x, *y);
}

static int compare_groups(const void *a, const void *b, void *arg)
{
	static const int ranks[TASK_STATE_COUNT] = {[TASK_RUNNING] = 0, [TASK_SUSPENDED] = 1, [TASK_CREATED] = 2};
	const struct task_group *x = a, *y = b;
	const struct task_groups *groups = arg;
	const struct trace_task *s = groups->members[x->first], *t = groups->members[y->first];
	int c = COMPARE(s->snap->pid, t->snap->pid);

	c = c ? c : compare_texts(s->library, t->library);
	c = c ? c : COMPARE(ranks[s->state], ranks[t->state]);
	c = c ? c : COMPARE(x->count, y->count);
	return c ? c : compare_names(s, t);
}

int task_groups_init(struct task_groups *groups, const struct trace *const *traces, size_t ntraces, bool merge)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < ntraces; i++)
		n += traces[i]->tasks.len;
	*groups = (struct task_groups){.members = calloc(n ? n : 1, sizeof(*groups->members))};
	if (!groups->members || !vec_reserve(groups, n ? n : 1)) {
		task_groups_deinit(groups);
		return -ENOMEM;
	}
	for (size_t i = 0; i < ntraces; i++)
		for (size_t k = 0; k < traces[i]->tasks.len; k++)
			groups->members[at++] = &traces[i]->tasks.data[k];
	if (merge)
		qsort(groups->members, n, sizeof(*groups->members), compare_members);
	for (size_t i = 0; i < n; i++) {
		struct task_group *last = groups->len ? &groups->data[groups->len - 1] : NULL;

		if (merge && last && compare_content(groups->members[last->first], groups->members[i]) == 0)
			last->count++;
		else
			groups->data[groups->len++] = (struct task_group){.first = i, .count = 1};
	}
	qsort_r(groups->data, groups->len, sizeof(*groups->data), compare_groups, groups);
	return 0;
}

void task_groups_deinit(struct task_groups *groups)
{
	free(groups->members);
	groups->members = NULL;
	vec_deinit(groups);
}
