/* SPDX-License-Identifier: MIT */
#include "wait/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* All threads, and for whom each waits: a thread waits for one other at most. */
struct graph {
	VEC(const struct trace_thread *) threads;
	struct u64map index; /* by pid and tid */
	size_t *seen_in;     /* the search in which a thread was met first, from 1 on; 0: not yet */
	bool doubtful;	     /* waits count, too, that are not certain */
};

static uint64_t key_of(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static bool add_threads(struct graph *g, const struct trace *const *traces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++) {
			const struct trace_thread *t = &traces[i]->threads.data[k];
			bool created;
			uint64_t *slot = u64map_put(&g->index, key_of(t->snap->pid, t->thread->tid), &created);

			if (!slot || !vec_push(&g->threads, t))
				return false;
			*slot = g->threads.len - 1;
		}
	g->seen_in = calloc(g->threads.len + 1, sizeof(*g->seen_in));
	return g->seen_in;
}

/* For whom it waits for ever; threads.len: for nobody. */
static size_t next_of(const struct graph *g, size_t at)
{
	const struct wait *w = &g->threads.data[at]->wait;
	const uint64_t *slot;

	if (w->holder != HOLDER_THREAD || w->timed || (!w->certain && !g->doubtful))
		return g->threads.len;
	slot = u64map_find(&g->index, key_of(w->owner_pid, w->owner));
	return slot ? (size_t)*slot : g->threads.len;
}

static bool add_cycle(const struct graph *g, size_t first, struct deadlocks *out)
{
	struct deadlock cycle = {0};
	size_t at = first;
	bool ok = true;

	do {
		ok = vec_push(&cycle, g->threads.data[at]);
		at = next_of(g, at);
	} while (ok && at != first);
	ok = ok && vec_push(out, cycle);
	if (!ok)
		vec_deinit(&cycle);
	return ok;
}

/* Along the waits from each thread that was not met yet: who is met again in the same search closes a cycle. */
static bool find_cycles(struct graph *g, struct deadlocks *out)
{
	for (size_t i = 0; i < g->threads.len; i++) {
		size_t at = i;

		while (at < g->threads.len && !g->seen_in[at]) {
			g->seen_in[at] = i + 1;
			at = next_of(g, at);
		}
		if (at < g->threads.len && g->seen_in[at] == i + 1 && !add_cycle(g, at, out))
			return false;
	}
	return true;
}

bool deadlocks_find(const struct trace *const *traces, size_t n, struct deadlocks *out)
{
	struct graph g = {0};
	struct deadlocks all = {0};
	bool ok = add_threads(&g, traces, n) && find_cycles(&g, out);

	if (ok) {
		memset(g.seen_in, 0, g.threads.len * sizeof(*g.seen_in));
		g.doubtful = true;
		ok = find_cycles(&g, &all);
		out->maybe_more = all.len > out->len;
	}
	deadlocks_deinit(&all);
	vec_deinit(&g.threads);
	u64map_deinit(&g.index);
	free(g.seen_in);
	return ok;
}
