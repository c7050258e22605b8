/* SPDX-License-Identifier: MIT */
#include "wait/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "model/descriptor.h"

static const size_t NOBODY = SIZE_MAX;

/* Threads of a healthy program wait for each other's locks for moments, and it may just have let go of one in a way that cannot be seen. */
static const int64_t LONG_FOR_INFERRED = INT64_C(1000000000); /* ns */

/* How much a wait has to be proved for. */
enum proof {
	PROVED_AT_INSTANT,  /* of locks in memory: at the instant of the snapshot */
	PROVED_UNTIL_LATER, /* also of what had to be read from the kernel after the snapshot: until all of that was read */
	PROVED_BUT_LIMITS,  /* the same, but time limits that cannot be seen are taken for none */
	UNPROVED,
};

/*
 * Threads, and behind them the processes, as somebody may wait for all threads of one. Each points at whom it is stuck with: a thread at
 * the one that has its lock, or at all processes that could end its wait; a process at all of its threads. It goes on if one of those does.
 */
struct vertex {
	size_t met;	/* when, from 1 on; 0: not yet */
	size_t low;	/* the first met of those that can be reached, as far as known */
	size_t next;	/* of those it points at, the one to be looked at */
	bool open;	/* its component is not known yet */
	bool free;	/* it may go on */
};

struct graph {
	const struct trace *const *traces;
	size_t n;
	VEC(const struct trace_thread *) threads;
	size_t *first;	     /* of each trace, and the end of all */
	struct u64map index; /* threads by pid and tid, and processes by pid */
	struct vertex *vertices;
	VEC(size_t) path; /* from where the search began to where it is */
	VEC(size_t) open; /* in the order in which they were met */
	enum proof proof;
	bool trusts_inferred;  /* who seems to have a lock that does not record it is taken to have it */
	bool without_strangers; /* as if nobody else could end a wait than those who are known: not all processes could be looked at */
	bool without_handlers; /* as if there were no signal handlers, but for those of event loops: see may_be_interrupted() */
	size_t met;
};

static uint64_t key_of(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static size_t find(const struct graph *g, pid_t pid, pid_t tid)
{
	const uint64_t *slot = u64map_find(&g->index, key_of(pid, tid));

	return slot ? (size_t)*slot : NOBODY;
}

static bool put(struct graph *g, pid_t pid, pid_t tid, size_t vertex)
{
	bool created;
	uint64_t *slot = u64map_put(&g->index, key_of(pid, tid), &created);

	if (slot)
		*slot = vertex;
	return slot;
}

static bool add_all(struct graph *g)
{
	g->first = calloc(g->n + 1, sizeof(*g->first));
	for (size_t i = 0; g->first && i < g->n; i++) {
		g->first[i] = g->threads.len;
		for (size_t k = 0; k < g->traces[i]->threads.len; k++) {
			const struct trace_thread *t = &g->traces[i]->threads.data[k];

			if (!put(g, t->snap->pid, t->thread->tid, g->threads.len) || !vec_push(&g->threads, t))
				return false;
		}
	}
	if (!g->first)
		return false;
	g->first[g->n] = g->threads.len;
	for (size_t i = 0; i < g->n; i++)
		if (!put(g, g->traces[i]->snap->pid, 0, g->threads.len + i))
			return false;
	g->vertices = calloc(g->threads.len + g->n + 1, sizeof(*g->vertices));
	return g->vertices && vec_reserve(&g->path, g->threads.len + g->n) && vec_reserve(&g->open, g->threads.len + g->n);
}

static void deinit(struct graph *g)
{
	vec_deinit(&g->threads);
	vec_deinit(&g->path);
	vec_deinit(&g->open);
	u64map_deinit(&g->index);
	free(g->first);
	free(g->vertices);
}

static bool is_process(const struct graph *g, size_t v)
{
	return v >= g->threads.len;
}

static bool has_ended(const struct trace_thread *t)
{
	return t->thread->status == THREAD_ZOMBIE;
}

/* Both processes were captured together: what was gathered of one is of the same time as what was of the other. */
static bool is_of_one_look(const struct snapshot *a, const struct snapshot *b)
{
	return a == b || (a->capture.instant_ns && a->capture.instant_ns == b->capture.instant_ns);
}

/* Other threads of its process, that is. The search ends at the first: there may be thousands, and each may be asked about. */
static bool has_others(const struct trace_thread *t)
{
	for (size_t i = 0; i < t->snap->threads.len; i++)
		if (&t->snap->threads.data[i] != t->thread && t->snap->threads.data[i].status != THREAD_ZOMBIE)
			return true;
	return t->snap->partial;
}

/*
 * Others can end the wait, too: those of its process, by adding a descriptor or closing one; and any child may be one that it traces, or
 * that has been left to it, which is not among its children yet.
 */
static bool has_helpers(const struct trace_thread *t)
{
	if (t->wait.kind == WAIT_EVENTS)
		return has_others(t);
	return t->wait.kind == WAIT_CHILD && t->wait.state.any_child;
}

/* It waits for what one thread has. */
static bool is_owned(const struct graph *g, const struct wait *w)
{
	return w->holder == HOLDER_THREAD || (w->holder == HOLDER_INFERRED && g->trusts_inferred);
}

/* Not of a fifo, which anybody may open, nor of what is not known to be what is waited for. */
static bool may_have_strangers(const struct wait *w)
{
	const struct descriptor *d = w->on && w->kind == WAIT_EVENTS && w->on->set.len ? w->on->set.data : w->on ? &w->on->on : NULL;

	return d && d->kind != DESCRIPTOR_FIFO && !w->on->guessed;
}

/* All that could end its wait is among the processes that were looked at. */
static bool has_all_peers(const struct graph *g, const struct trace_thread *t)
{
	const struct wait *w = &t->wait;

	for (size_t i = 0; i < w->npeers; i++) {
		const size_t peer = find(g, w->peers[i].pid, 0);

		if (peer == NOBODY || (g->proof != UNPROVED && !is_of_one_look(t->snap, g->traces[peer - g->threads.len]->snap)))
			return false;
	}
	return w->npeers && (w->peers_known || (g->without_strangers && may_have_strangers(w))) && !has_helpers(t);
}

/* A socket may have a time limit of its own for those who read and write it (SO_RCVTIMEO). */
static bool may_time_out(const struct graph *g, const struct wait *w)
{
	return g->proof < PROVED_BUT_LIMITS && w->on && w->kind != WAIT_EVENTS && w->on->on.kind == DESCRIPTOR_SOCKET && !w->on->on.socket.endless;
}

/* The main thread of Python runs handlers while it waits for a lock of Python's or for a thread: one that raises an exception ends the wait. */
static bool is_python_main(const struct trace_thread *t)
{
	return t->thread->tid == t->snap->pid &&
	       (t->wait.kind == WAIT_PYTHON_RLOCK || t->wait.kind == WAIT_PYTHON_LOCK || t->wait.kind == WAIT_PYTHON_JOIN);
}

/*
 * A signal may end the wait, or do something for it: who waits for itself alone mostly waits for that. Other locks in memory are waited for
 * again after it, and a child of vfork() as if there were none.
 */
static bool may_be_interrupted(const struct graph *g, const struct trace_thread *t)
{
	const struct thread_facts *facts = &t->thread->facts;
	const bool by_itself = t->wait.npeers == 1 && t->wait.peers[0].pid == t->snap->pid;

	if (t->wait.kind == WAIT_VFORK || (is_owned(g, &t->wait) && !is_python_main(t)))
		return false;
	if (facts->has_async_handler && (by_itself || t->wait.kind == WAIT_EVENTS || !g->without_handlers)) /* event loops often wait for signals, too */
		return true;
	return facts->has_handler && by_itself;
}

/* A handler runs also in a thread that waits for a lock in memory, and does for others what the thread itself cannot. */
static bool may_run_handler(const struct graph *g, size_t trace)
{
	for (size_t i = g->first[trace]; i < g->first[trace + 1]; i++)
		if (g->threads.data[i]->thread->facts.has_async_handler && !has_ended(g->threads.data[i]) && g->threads.data[i]->wait.kind != WAIT_VFORK)
			return true;
	return false;
}

static bool is_bound_process(const struct graph *g, size_t trace)
{
	return !g->traces[trace]->snap->partial && (g->without_handlers || !may_run_handler(g, trace));
}

static bool is_proved(const struct graph *g, const struct trace_thread *t)
{
	const int64_t blocked = t->thread->off_cpu_ns;

	return t->wait.certain || (t->wait.holder == HOLDER_INFERRED && is_owned(g, &t->wait) && (blocked < 0 || blocked >= LONG_FOR_INFERRED));
}

/* It goes on only if one goes on that it points at. */
static bool is_bound(const struct graph *g, size_t v)
{
	const struct trace_thread *t = is_process(g, v) ? NULL : g->threads.data[v];

	if (!t)
		return is_bound_process(g, v - g->threads.len);
	if (has_ended(t))
		return true;
	if (t->wait.timed || (g->proof != UNPROVED && (!is_proved(g, t) || may_time_out(g, &t->wait))))
		return false;
	if ((g->proof == PROVED_UNTIL_LATER || g->proof == PROVED_BUT_LIMITS) && !t->thread->still_besides)
		return false;
	if (may_be_interrupted(g, t))
		return false;
	if (is_owned(g, &t->wait))
		return find(g, t->wait.owner_pid, t->wait.owner) != NOBODY;
	return g->proof > PROVED_AT_INSTANT && has_all_peers(g, t);
}

/* The next that a bound one points at; NOBODY: there are no more. */
static size_t next_of(const struct graph *g, size_t v)
{
	const size_t k = g->vertices[v].next++;
	const struct trace_thread *t;

	if (is_process(g, v)) {
		const size_t i = v - g->threads.len;

		return g->first[i] + k < g->first[i + 1] ? g->first[i] + k : NOBODY;
	}
	t = g->threads.data[v];
	if (has_ended(t))
		return NOBODY;
	if (is_owned(g, &t->wait))
		return k == 0 ? find(g, t->wait.owner_pid, t->wait.owner) : NOBODY;
	return k < t->wait.npeers ? find(g, t->wait.peers[k].pid, 0) : NOBODY;
}

static int compare_vertices(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* Where each has one that it waits for, they come in this order; else by process. Processes themselves are left out. */
static bool add_deadlock(const struct graph *g, size_t *members, size_t n, struct deadlocks *out)
{
	struct deadlock deadlock = {0};
	bool ok = true;

	qsort(members, n, sizeof(*members), compare_vertices);
	if (!is_process(g, members[n - 1])) {
		size_t at = members[0];

		do {
			const struct wait *w = &g->threads.data[at]->wait;

			ok = vec_push(&deadlock, g->threads.data[at]);
			at = find(g, w->owner_pid, w->owner);
		} while (ok && at != members[0]);
	} else {
		for (size_t i = 0; ok && i < n && !is_process(g, members[i]); i++)
			ok = vec_push(&deadlock, g->threads.data[members[i]]);
	}
	ok = ok && vec_push(out, deadlock);
	if (!ok)
		vec_deinit(&deadlock);
	return ok;
}

static bool waits_for_itself(const struct graph *g, size_t v)
{
	const struct trace_thread *t = is_process(g, v) ? NULL : g->threads.data[v];

	return t && is_owned(g, &t->wait) && find(g, t->wait.owner_pid, t->wait.owner) == v;
}

/* Those of the last component that are bound for ever, because all are that they point at, and who are in a circle. */
static bool close_component(struct graph *g, size_t root, struct deadlocks *out)
{
	size_t first = g->open.len, n;
	bool is_free = false;

	do
		is_free |= g->vertices[g->open.data[--first]].free;
	while (g->open.data[first] != root);
	for (size_t i = first; i < g->open.len; i++) {
		g->vertices[g->open.data[i]].free = is_free;
		g->vertices[g->open.data[i]].open = false;
	}
	n = g->open.len - first;
	g->open.len = first;
	if (is_free || (n == 1 && !waits_for_itself(g, root)))
		return true;
	return add_deadlock(g, g->open.data + first, n, out);
}

static void meet(struct graph *g, size_t v)
{
	g->met++;
	g->vertices[v] = (struct vertex){.met = g->met, .low = g->met, .open = true, .free = !is_bound(g, v)};
	g->path.data[g->path.len++] = v;
	g->open.data[g->open.len++] = v;
}

/* What is known of one that `v` points at. */
static void learn(struct graph *g, size_t v, size_t other)
{
	const struct vertex *o = &g->vertices[other];

	if (o->open && o->low < g->vertices[v].low)
		g->vertices[v].low = o->low;
	if (!o->open && o->free)
		g->vertices[v].free = true;
}

/* Tarjan's search: components come in an order in which all that one points at are known before it. */
static bool search_from(struct graph *g, size_t start, struct deadlocks *out)
{
	meet(g, start);
	while (g->path.len) {
		const size_t v = g->path.data[g->path.len - 1];
		const size_t next = g->vertices[v].free ? NOBODY : next_of(g, v);

		if (next != NOBODY && !g->vertices[next].met) {
			meet(g, next);
			continue;
		}
		if (next != NOBODY) {
			learn(g, v, next);
			continue;
		}
		g->path.len--;
		if (g->vertices[v].low == g->vertices[v].met && !close_component(g, v, out))
			return false;
		if (g->path.len)
			learn(g, g->path.data[g->path.len - 1], v);
	}
	return true;
}

static bool search(struct graph *g, enum proof proof, struct deadlocks *out)
{
	g->proof = proof;
	g->met = 0;
	memset(g->vertices, 0, (g->threads.len + g->n) * sizeof(*g->vertices));
	for (size_t i = 0; i < g->threads.len; i++)
		if (!g->vertices[i].met && !search_from(g, i, out))
			return false;
	return true;
}

/* What was not found already: circles of locks alone are found in both ways. */
static bool add_new(struct deadlocks *found, struct deadlocks *out)
{
	const size_t before = out->len;

	for (size_t i = 0; i < found->len; i++) {
		const struct deadlocks known = {.data = out->data, .len = before};

		if (deadlocks_with(&known, found->data[i].data[0]))
			continue;
		if (!vec_push(out, found->data[i]))
			return false;
		found->data[i] = (struct deadlock){0};
	}
	return true;
}

static bool has_new(const struct deadlocks *found, const struct deadlocks *known)
{
	for (size_t i = 0; i < found->len; i++)
		if (!deadlocks_with(known, found->data[i].data[0]))
			return true;
	return false;
}

/* Those that are not among them already, with as much proof as there can be. */
static bool find_proved(struct graph *g, struct deadlocks *out)
{
	struct deadlocks locks = {0}, later = {0};
	const bool ok = search(g, PROVED_AT_INSTANT, &locks) && add_new(&locks, out) && search(g, PROVED_UNTIL_LATER, &later) && add_new(&later, out);

	deadlocks_deinit(&locks);
	deadlocks_deinit(&later);
	return ok;
}

/* Behind those that are proved. From here on, inferred holders are believed. */
static bool find_likely(struct graph *g, struct deadlocks *out)
{
	const size_t proved = out->len;
	bool ok;

	g->trusts_inferred = true;
	ok = find_proved(g, out);
	for (size_t i = proved; i < out->len; i++)
		out->data[i].likely = true;
	return ok;
}

/* What could not be proved, or only if sockets have no time limits. */
static bool find_unproved(struct graph *g, struct deadlocks *out)
{
	struct deadlocks but_limits = {0}, all = {0};
	const bool ok = search(g, PROVED_BUT_LIMITS, &but_limits) && search(g, UNPROVED, &all);

	out->maybe_more = ok && all.len > out->len;
	out->doubt = but_limits.len == all.len ? DOUBT_LIMITS : DOUBT_UNPROVED;
	deadlocks_deinit(&but_limits);
	deadlocks_deinit(&all);
	return ok;
}

/* As if something were not there that may help those who wait. Circles of locks alone are proved without a look behind the snapshot. */
static bool find_without(struct graph *g, bool handlers, bool strangers, enum deadlock_doubt doubt, struct deadlocks *out)
{
	struct deadlocks locks = {0}, others = {0};
	bool ok = true;

	if (out->maybe_more)
		return true;
	g->without_handlers = handlers;
	g->without_strangers = strangers;
	ok = search(g, PROVED_AT_INSTANT, &locks) && search(g, PROVED_BUT_LIMITS, &others);
	if (ok && (has_new(&locks, out) || has_new(&others, out))) {
		out->maybe_more = true;
		out->doubt = doubt;
	}
	deadlocks_deinit(&locks);
	deadlocks_deinit(&others);
	return ok;
}

bool deadlocks_find(const struct trace *const *traces, size_t n, struct deadlocks *out)
{
	struct graph g = {.traces = traces, .n = n};
	const bool ok = add_all(&g) && find_proved(&g, out) && find_likely(&g, out) && find_unproved(&g, out) &&
			find_without(&g, true, false, DOUBT_HANDLERS, out) && find_without(&g, false, true, DOUBT_STRANGERS, out) &&
			find_without(&g, true, true, DOUBT_BOTH, out);

	deinit(&g);
	return ok;
}
