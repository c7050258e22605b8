/* SPDX-License-Identifier: MIT */
#include "report/why.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "report/text_table.h"
#include "report/wait_words.h"

enum { LONGEST_CHAIN = 16, MANY_ALIKE = 4 /* groups of which each waits for something of its own, that are told in one sentence */ };

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

static const char *place_of(const struct trace_thread *t)
{
	const struct frame *frame = text_table_frame(t);

	return frame && frame->symbol ? frame->symbol : "";
}

/* A group that may be made one with others. */
struct candidate {
	size_t group;
	const struct trace_thread *first, *owner; /* NULL: there is none */
	const char *place, *owners_place;
	unsigned chain;
};

static bool is_join(enum wait_kind kind)
{
	return kind == WAIT_JOIN || kind == WAIT_PYTHON_JOIN || kind == WAIT_JAVA_JOIN;
}

/*
 * What they wait for is an object in memory that does not tell who has it: there is no chain behind it. Or, to be folded, one that does; but an owner
 * whose part in all of this is told anyway, or who is not known, makes a group one of its own.
 */
static bool may_be_alike(const struct why_groups *groups, const struct why_group *group, const struct deadlocks *deadlocks, bool folds,
			 const struct trace_thread *owner)
{
	const struct trace_thread *const *members = (const struct trace_thread *const *)groups->members + group->first;
	const struct wait *w = &members[0]->wait;

	if (!w->kind || wait_is_on_descriptors(w->kind) || wait_is_state(w) || (!w->address && !w->word))
		return false;
	if (w->holder != HOLDER_NOT_RECORDED && (!folds || is_join(w->kind) || !owner || deadlocks_with(deadlocks, owner)))
		return false;
	for (size_t i = 1; i < group->count; i++)
		if (strcmp(place_of(members[0]), place_of(members[i])) != 0)
			return false;
	return true;
}

/* Also by what the owners do, and where. */
static int compare_alike(const struct candidate *a, const struct candidate *b)
{
	const struct trace_thread *x = a->first, *y = b->first;
	int order = COMPARE(x->wait.kind, y->wait.kind);

	if (!order)
		order = COMPARE(x->wait.holder, y->wait.holder);
	if (!order)
		order = COMPARE(a->chain, b->chain);
	if (!order)
		order = COMPARE(x->snap->pid, y->snap->pid);
	if (!order)
		order = COMPARE(x->wait.timed, y->wait.timed);
	if (!order)
		order = COMPARE(a->owner != NULL, b->owner != NULL);
	if (!order && a->owner)
		order = COMPARE(a->owner->wait.kind, b->owner->wait.kind);
	if (!order && a->owner)
		order = COMPARE(a->owner->thread->state, b->owner->thread->state);
	if (!order && a->owner)
		order = strcmp(a->owners_place, b->owners_place);
	return order ? order : strcmp(a->place, b->place);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = compare_alike(x, y);

	return order ? order : COMPARE(x->group, y->group);
}

/* Makes one group of these, whose members get to the end of `members`. */
static void join(struct why_groups *groups, const struct candidate *which, size_t n, const struct trace_thread **members, size_t *nmembers)
{
	struct why_group joined = {.first = *nmembers};

	for (size_t i = 0; i < n; i++) {
		struct why_group *group = &groups->data[which[i].group];

		memcpy(members + *nmembers, groups->members + group->first, group->count * sizeof(*members));
		*nmembers += group->count;
		joined.count += group->count;
		joined.chain = group->chain;
		group->count = 0;
	}
	groups->data[which[0].group] = joined;
}

static void drop_empty(struct why_groups *groups)
{
	size_t kept = 0;

	for (size_t i = 0; i < groups->len; i++)
		if (groups->data[i].count)
			groups->data[kept++] = groups->data[i];
	groups->len = kept;
}

/* A pool may have a condition variable, or a semaphore, for each of its threads. */
static bool join_alike(struct why_groups *groups, const struct trace *const *traces, size_t ntraces, const struct deadlocks *deadlocks, bool folds)
{
	_cleanup_free_ struct candidate *which = calloc(groups->len + 1, sizeof(*which));
	const struct trace_thread **members = malloc((2 * groups->n + 1) * sizeof(*members)); /* as they were, and behind them those joined */
	size_t n = 0, nmembers = groups->n;

	if (!which || !members) {
		free(members);
		return false;
	}
	for (size_t i = 0; i < groups->len; i++) {
		const struct trace_thread *first = groups->members[groups->data[i].first];
		const struct trace_thread *owner = folds && wait_has_owner(&first->wait) ? wait_find_owner(&first->wait, traces, ntraces) : NULL;

		if (may_be_alike(groups, &groups->data[i], deadlocks, folds, owner))
			which[n++] = (struct candidate){.group = i, .first = first, .owner = owner, .place = place_of(first),
							.owners_place = owner ? place_of(owner) : "", .chain = groups->data[i].chain};
	}
	qsort(which, n, sizeof(*which), compare_candidates);
	memcpy(members, groups->members, groups->n * sizeof(*members));
	for (size_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && compare_alike(&which[i], &which[next]) == 0; next++)
			;
		if (next - i >= MANY_ALIKE)
			join(groups, which + i, next - i, members, &nmembers);
	}
	free(groups->members);
	groups->members = members;
	drop_empty(groups);
	return true;
}

bool why_groups_init(struct why_groups *groups, const struct trace *const *traces, size_t ntraces, const struct deadlocks *deadlocks, bool folds)
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
	if (!join_alike(groups, traces, ntraces, deadlocks, folds))
		return false;
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
