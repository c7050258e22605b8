/* SPDX-License-Identifier: MIT */
#include "wait/ready.h"

#include <stdlib.h>

/* Those that were looked at and had a CPU then. Two may have had the same one, one after the other. */
struct runners {
	VEC_FIELDS(const struct trace_thread *);
};

/* Whoever had no CPU when it was looked at was told who had it, and may have got it since. */
static bool had_cpu(const struct trace_thread *t)
{
	return t->thread->state == 'R' && !t->wait.kind && t->thread->facts.cpu >= 0 && !thread_is_ready(t->thread) && !t->thread->facts.ahead.comm;
}

static bool find_runners(struct trace *const *traces, size_t n, struct runners *runners)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++)
			if (had_cpu(&traces[i]->threads.data[k]) && !vec_push(runners, &traces[i]->threads.data[k]))
				return false;
	return true;
}

/* On the CPU that it is ready for, preferably of the process that is named already. */
static const struct trace_thread *find_runner(const struct runners *runners, const struct trace_thread *ready)
{
	const struct trace_thread *found = NULL;

	for (size_t i = 0; i < runners->len; i++) {
		const struct trace_thread *t = runners->data[i];

		if (t->thread->facts.cpu != ready->thread->facts.cpu)
			continue;
		if (t->snap->pid == ready->wait.peers[0].pid)
			return t;
		found = t;
	}
	return found;
}

static bool is_looked_at(struct trace *const *traces, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (traces[i]->snap->pid == pid)
			return true;
	return false;
}

static void name_runner(struct trace_thread *ready, const struct trace_thread *runner)
{
	struct wait_peer *peer;

	if (runner->snap->pid == ready->wait.peers[0].pid)
		return;
	peer = arena_alloc(ready->snap->arena, sizeof(*peer));
	if (peer)
		*peer = (struct wait_peer){.pid = runner->snap->pid, .comm = runner->thread->name};
	ready->wait.peers = peer;
	ready->wait.npeers = peer != NULL;
}

void waits_settle_ready(struct trace *const *traces, size_t n)
{
	struct runners runners = {0};
	const bool ok = find_runners(traces, n, &runners);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->threads.len; k++) {
			struct trace_thread *t = &traces[i]->threads.data[k];
			const struct trace_thread *runner;

			if (t->wait.kind != WAIT_CPU || !t->wait.npeers)
				continue;
			runner = find_runner(&runners, t);
			if (runner)
				name_runner(t, runner);
			else if (!ok || is_looked_at(traces, n, t->wait.peers[0].pid))
				t->wait.npeers = 0;
		}
	vec_deinit(&runners);
}
