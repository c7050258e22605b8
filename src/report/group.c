/* SPDX-License-Identifier: MIT */
#include "report/group.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/order.h"

enum rank {
	RANK_RUNNING,
	RANK_UNINTERRUPTIBLE,
	RANK_MAIN,
	RANK_OTHER,
	RANK_ENDED,
};

static int compare_syscalls(const struct snap_syscall *a, const struct snap_syscall *b)
{
	int c = COMPARE(a->state, b->state);

	return c || a->state != SYSCALL_IN ? c : COMPARE(a->nr, b->nr);
}

/* What stands for the stack: threads of one process with equal raw stacks share the named one. */
static uintptr_t stack_id(const struct groups *groups, const struct stack *stack)
{
	const uint64_t *same = stack ? u64map_find(&groups->same, (uintptr_t)stack) : NULL;

	return same ? (uintptr_t)*same : (uintptr_t)stack;
}

/*
 * 0 for threads that are shown as one. Threads that were held or could not be captured differ in what there is to say
 * about them.
 */
static int compare_content(const struct groups *g, const struct trace_thread *a, const struct trace_thread *b)
{
	const struct snap_thread *s = a->thread, *t = b->thread;
	int c = COMPARE(s->state, t->state);

	c = c ? c : COMPARE(s->status, t->status);
	c = c ? c : COMPARE(s->capture, t->capture);
	c = c ? c : compare_texts(s->why, t->why);
	c = c ? c : COMPARE(s->tracer, t->tracer);
	c = c ? c : compare_syscalls(&s->syscall, &t->syscall);
	c = c ? c : COMPARE(stack_id(g, a->kernel), stack_id(g, b->kernel));
	c = c ? c : COMPARE(stack_id(g, a->user), stack_id(g, b->user));
	c = c ? c : COMPARE(a->runtime.holds_gil, b->runtime.holds_gil);
	c = c ? c : COMPARE(a->runtime.waits_for_gil, b->runtime.waits_for_gil);
	c = c ? c : compare_texts(a->runtime.problem, b->runtime.problem);
	c = c ? c : COMPARE(a->raw.end, b->raw.end);
	return c || a->raw.end == STACK_COMPLETE ? c : COMPARE(a->raw.end_pc, b->raw.end_pc);
}

static int compare_members(const void *a, const void *b, void *arg)
{
	const struct trace_thread *const *x = a, *const *y = b;
	int c = compare_content(arg, *x, *y);

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

static enum rank group_rank(const struct groups *groups, const struct group *group)
{
	enum rank best = RANK_ENDED;

	for (size_t i = 0; i < group->count; i++) {
		const struct trace_thread *member = groups->members[group->first + i];
		enum rank rank = rank_of(member->thread, member->snap->pid);

		best = rank < best ? rank : best;
	}
	return best;
}

static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct group *x = a, *y = b;
	const struct groups *groups = arg;
	int c = COMPARE(group_rank(groups, x), group_rank(groups, y));

	c = c ? c : COMPARE(x->count, y->count);
	return c ? c : COMPARE(groups->members[x->first]->thread->tid, groups->members[y->first]->thread->tid);
}

/* Processes have their files at other addresses, each its own copies of the names. */
static bool are_same_frames(const struct frame *a, const struct frame *b)
{
	const struct module_info *m = a->module, *n = b->module;

	if (a->kind != b->kind || a->inlined != b->inlined || a->flags != b->flags || a->line != b->line ||
	    a->offset != b->offset || compare_texts(a->symbol, b->symbol) != 0)
		return false;
	if (!m || !n)
		return !m && !n && (a->symbol || a->address == b->address);
	return a->module_offset == b->module_offset && strcmp(m->path, n->path) == 0 &&
	       compare_texts(m->build_id, n->build_id) == 0;
}

static bool are_same_stacks(const struct stack *a, const struct stack *b)
{
	bool same = a->len == b->len;

	for (size_t i = 0; same && i < a->len; i++)
		same = are_same_frames(&a->data[i], &b->data[i]);
	return same;
}

static uint64_t hash_stack(const struct stack *stack)
{
	uint64_t hash = HASH_SEED;

	for (size_t i = 0; i < stack->len; i++) {
		const struct frame *frame = &stack->data[i];

		hash = hash_bytes(hash, frame->symbol, frame->symbol ? strlen(frame->symbol) : 0);
		hash = hash_u64(hash, frame->offset);
		hash = hash_u64(hash, frame->module_offset);
	}
	return hash;
}

/* False when memory is exhausted. */
static bool find_same(struct groups *groups, struct u64map *by_hash, const struct stack *stack)
{
	bool created;
	uint64_t *same, *first, hash;

	if (!stack)
		return true;
	same = u64map_put(&groups->same, (uintptr_t)stack, &created);
	if (!same || !created)
		return same != NULL;
	*same = (uintptr_t)stack;
	for (hash = hash_stack(stack);; hash++) {
		first = u64map_put(by_hash, hash, &created);
		if (!first)
			return false;
		if (created)
			*first = (uintptr_t)stack;
		else if (!are_same_stacks((const struct stack *)(uintptr_t)*first, stack))
			continue;
		*same = *first;
		return true;
	}
}

static bool find_same_stacks(struct groups *groups, size_t n)
{
	_cleanup_(u64map_deinit) struct u64map by_hash = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++)
		ok = find_same(groups, &by_hash, groups->members[i]->user) &&
		     find_same(groups, &by_hash, groups->members[i]->kernel);
	return ok;
}

static void list_members(struct groups *groups, const struct trace *const *traces, size_t ntraces)
{
	size_t n = 0;

	for (size_t i = 0; i < ntraces; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++)
			groups->members[n++] = &traces[i]->threads.data[k];
}

int groups_init(struct groups *groups, const struct trace *const *traces, size_t ntraces, bool merge)
{
	size_t n = 0;

	for (size_t i = 0; i < ntraces; i++)
		n += traces[i]->threads.len;
	*groups = (struct groups){.members = calloc(n ? n : 1, sizeof(*groups->members))};
	if (!groups->members || !vec_reserve(groups, n ? n : 1)) {
		groups_deinit(groups);
		return -ENOMEM;
	}
	list_members(groups, traces, ntraces);
	if (merge && ntraces > 1 && !find_same_stacks(groups, n)) {
		groups_deinit(groups);
		return -ENOMEM;
	}
	if (merge)
		qsort_r(groups->members, n, sizeof(*groups->members), compare_members, groups);
	for (size_t i = 0; i < n; i++) {
		struct group *last = groups->len ? &groups->data[groups->len - 1] : NULL;

		if (merge && last && compare_content(groups, groups->members[last->first], groups->members[i]) == 0)
			last->count++;
		else
			groups->data[groups->len++] = (struct group){.first = i, .count = 1};
	}
	qsort_r(groups->data, groups->len, sizeof(*groups->data), compare_groups, groups);
	return 0;
}

void groups_deinit(struct groups *groups)
{
	free(groups->members);
	groups->members = NULL;
	u64map_deinit(&groups->same);
	vec_deinit(groups);
}
