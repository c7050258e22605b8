/* SPDX-License-Identifier: MIT */
#include "watch/rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/descriptor.h"
#include "watch/verdict.h"

enum {
	MOST_ENDED = 64,   /* threads that are told of one by one */
	MOST_NAMES = 20000, /* of functions */
	MOST_NOTES = 32,
};

uint64_t watch_stack_key(const struct trace_thread *t)
{
	const struct snap_syscall *call = &t->thread->syscall;
	uint64_t key = HASH_SEED;

	if (t->thread->status != THREAD_CAPTURED || t->thread->capture == CAPTURE_MOVED || !t->raw.len)
		return 0;
	for (size_t i = 0; i < t->raw.len; i++)
		key = hash_u64(key, t->raw.data[i].pc);
	for (size_t i = 0; i < t->raw.runtime.len; i++)
		key = hash_u64(hash_u64(key, t->raw.runtime.data[i].code), t->raw.runtime.data[i].place);
	key = hash_u64(key, call->state == SYSCALL_IN ? (uint64_t)call->nr + 1 : 0);
	return key ? key : 1;
}

/* Of these processes, in any order: they are found in that of chance. */
static uint64_t peers_key(const struct wait_peer *peers, uint32_t n, bool known)
{
	uint64_t key = known;

	for (uint32_t i = 0; i < n; i++)
		key += hash_u64(HASH_SEED, (uint64_t)peers[i].pid);
	return key;
}

static uint64_t descriptor_key(const struct descriptor *d)
{
	return peers_key(d->peers, d->npeers, d->peers_known);
}

/* Stands for all processes that can end waits of this one's threads, as far as the kernel told them. */
static uint64_t others_key(const struct snapshot *snap)
{
	uint64_t key = HASH_SEED;

	for (size_t i = 0; i < snap->waits.len; i++) {
		const struct snap_wait *w = &snap->waits.data[i];

		key = hash_u64(hash_u64(hash_u64(key, (uint64_t)w->tid), w->set.total), descriptor_key(&w->on));
		for (uint32_t k = 0; k < w->set.len; k++)
			key = hash_u64(key, descriptor_key(&w->set.data[k]));
	}
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct thread_facts *facts = &snap->threads.data[i].facts;

		key = hash_u64(hash_u64(key, peers_key(facts->others, facts->nothers, facts->has_children)), facts->total);
	}
	return key;
}

static bool has_ended(const struct snap_thread *t)
{
	return t->status == THREAD_EXITED || t->status == THREAD_ZOMBIE;
}

static int compare_numbers(const struct watched_thread *t, pid_t pid, pid_t tid)
{
	return t->pid != pid ? (t->pid > pid) - (t->pid < pid) : (t->tid > tid) - (t->tid < tid);
}

static int compare_threads(const void *a, const void *b)
{
	const struct watched_thread *y = b;

	return compare_numbers(a, y->pid, y->tid);
}

/* Among the first `n`, which are in order. */
static struct watched_thread *find(struct watch_log *w, size_t n, pid_t pid, pid_t tid)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;
		int order = compare_numbers(&w->threads.data[middle], pid, tid);

		if (order == 0)
			return &w->threads.data[middle];
		if (order < 0)
			low = middle + 1;
		else
			n = middle;
	}
	return NULL;
}

void watch_begin_round(struct watch_log *w, uint64_t now_ns)
{
	w->rounds++;
	w->now_ns = now_ns;
	if (w->rounds == 1)
		w->begun_ns = now_ns;
	w->nended_now = 0;
	notes_deinit(&w->notes);
	for (size_t i = 0; i < w->processes.len; i++)
		w->processes.data[i].seen = w->processes.data[i].others_changed = false;
	for (size_t i = 0; i < w->threads.len; i++)
		w->threads.data[i].seen = false;
}

/* It is told of in the end, if it is one of the first; else counted. */
static bool bury(struct watch_log *w, const struct watched_thread *t)
{
	struct watched_thread dead = *t;

	w->nended++;
	w->nended_now++;
	dead.ended = w->rounds;
	dead.traced = NULL;
	dead.verdict = watch_verdict_of(&dead);
	return w->ended.len >= MOST_ENDED || vec_push(&w->ended, dead);
}

static struct watch_look look_at(const struct trace_thread *t, uint64_t at_ns)
{
	const struct snap_thread *s = t->thread;

	return (struct watch_look){
		.at_ns = at_ns,
		.nvcsw = s->nvcsw,
		.nivcsw = s->nivcsw,
		.cpu_ns = s->cpu_ns,
		.stack = watch_stack_key(t),
		.state = s->state,
		.running = s->state == 'R' && s->off_cpu_ns < 0,
	};
}

static void begin_thread(const struct watch_log *w, const struct trace_thread *t, struct watched_thread *out)
{
	*out = (struct watched_thread){
		.pid = t->snap->pid, .tid = t->thread->tid, .start = t->thread->start, .born = w->rounds, .step_cpu_ns = -1};
}

static void add_look(struct watched_thread *w, const struct trace_thread *t, uint64_t at_ns)
{
	struct watch_look now = look_at(t, at_ns);

	snprintf(w->name, sizeof(w->name), "%s", trace_thread_name(t));
	w->traced = t;
	w->seen = true;
	w->before = w->step;
	if (!w->looks) {
		w->first = now;
		w->before = WATCH_FIRST;
		w->step = WATCH_FIRST;
	} else {
		w->step = watch_step_between(&w->last, &now);
		w->step_ns = now.at_ns - w->last.at_ns;
		w->step_cpu_ns = now.cpu_ns < 0 || now.cpu_ns < w->last.cpu_ns || w->last.cpu_ns < 0 ? -1 : now.cpu_ns - w->last.cpu_ns;
		w->steps[w->step]++;
		w->still = w->step == WATCH_STILL ? w->still + 1 : 0;
		w->still_since_ns = w->still > 1 ? w->still_since_ns : w->last.at_ns;
		w->was_busy = w->busy;
		w->busy = watch_step_cpu_share(w) >= WATCH_BUSY_FROM;
	}
	w->last = now;
	w->looks++;
	w->verdict = watch_verdict_of(w);
}

static struct watched_process *add_process(struct watch_log *w, const struct snapshot *snap)
{
	const uint64_t others = others_key(snap);
	struct watched_process *p = NULL;

	for (size_t i = 0; i < w->processes.len; i++)
		if (w->processes.data[i].pid == snap->pid && !w->processes.data[i].ended)
			p = &w->processes.data[i];
	if (!p) {
		if (!vec_push(&w->processes, (struct watched_process){.pid = snap->pid}))
			return NULL;
		p = &w->processes.data[w->processes.len - 1];
	}
	p->comm = arena_intern(w->arena, snap->comm ? snap->comm : "?");
	p->seen = true;
	p->others_changed = p->looks && p->others != others;
	p->others = others;
	p->looks++;
	return p->comm ? p : NULL;
}

/* Starts are of the clock of whoever has read them. */
static bool is_another(const struct watched_thread *known, const struct snap_thread *t, bool comparable)
{
	return comparable && known->start && t->start && known->start != t->start;
}

static bool see_thread(struct watch_log *w, size_t known, const struct trace_thread *t, uint64_t at_ns, bool comparable)
{
	struct watched_thread *old = find(w, known, t->snap->pid, t->thread->tid), fresh;

	if (old && is_another(old, t->thread, comparable)) {
		if (!bury(w, old))
			return false;
		begin_thread(w, t, old);
		w->nborn++;
	}
	if (old) {
		old->start = t->thread->start ? t->thread->start : old->start;
		add_look(old, t, at_ns);
		return true;
	}
	begin_thread(w, t, &fresh);
	add_look(&fresh, t, at_ns);
	w->nborn += w->rounds > 1;
	return vec_push(&w->threads, fresh);
}

/* All of a process that were not seen although it was looked at. */
static bool bury_unseen(struct watch_log *w, pid_t pid)
{
	size_t kept = 0;
	bool ok = true;

	for (size_t i = 0; i < w->threads.len; i++) {
		struct watched_thread *t = &w->threads.data[i];

		if (t->pid == pid && !t->seen)
			ok = bury(w, t) && ok;
		else
			w->threads.data[kept++] = *t;
	}
	w->threads.len = kept;
	return ok;
}

static void sort_threads(struct watch_log *w)
{
	if (w->threads.len)
		qsort(w->threads.data, w->threads.len, sizeof(*w->threads.data), compare_threads);
}

void watch_note(struct watch_log *w, const char *note)
{
	notes_add(&w->notes, "%s", note);
	if (w->all_notes.len < MOST_NOTES)
		notes_add(&w->all_notes, "%s", note);
}

/* A stop wakes those that sleep: their counters rise. */
static bool was_anyone_woken(const struct trace *trace)
{
	for (size_t i = 0; i < trace->threads.len; i++)
		if (trace->threads.data[i].thread->pause_ns && trace->threads.data[i].thread->still != STILL_NEVER)
			return true;
	return false;
}

bool watch_see(struct watch_log *w, const struct trace *trace)
{
	const struct snapshot *snap = trace->snap;
	uint64_t at_ns = snap->taken_at_monotonic_ns ? (uint64_t)snap->taken_at_monotonic_ns : w->now_ns;
	struct watched_process *p = add_process(w, snap);
	size_t known = w->threads.len, alive = 0;
	const char *method = p ? arena_intern(w->arena, snap->capture.method) : NULL;
	bool ok = p != NULL;

	for (size_t i = 0; ok && i < trace->threads.len; i++) {
		if (has_ended(trace->threads.data[i].thread))
			continue;
		alive++;
		ok = see_thread(w, known, &trace->threads.data[i], at_ns, method == p->method);
	}
	if (!ok)
		return false;
	if (was_anyone_woken(trace) && !w->woken_told) {
		w->woken_told = true;
		watch_note(w, "threads that slept had to be stopped for the look, which counts as a move of theirs: who is stuck is shown as one "
			      "that came back to its place");
	}
	p->method = method;
	if (!alive)
		p->ended = w->rounds;
	sort_threads(w);
	return bury_unseen(w, snap->pid);
}

bool watch_miss(struct watch_log *w, pid_t pid, bool ended, const char *why)
{
	struct watched_process *p = NULL;

	for (size_t i = 0; i < w->processes.len; i++)
		if (w->processes.data[i].pid == pid && !w->processes.data[i].ended)
			p = &w->processes.data[i];
	if (ended && p) {
		p->ended = w->rounds;
		p->seen = true;
		return bury_unseen(w, pid);
	}
	w->failed++;
	watch_note(w, why);
	return true;
}

bool watch_has_changed(const struct watch_log *w)
{
	for (size_t i = 0; i < w->threads.len; i++)
		if (w->threads.data[i].seen && w->threads.data[i].step != WATCH_STILL)
			return true;
	for (size_t i = 0; i < w->processes.len; i++)
		if (w->processes.data[i].others_changed)
			return true;
	return w->nended_now > 0;
}

/* What the watch has of a name; NULL: it has too many already. */
static const char *intern(struct watch_log *w, const char *name)
{
	uint64_t hash = hash_bytes(HASH_SEED, name, strlen(name)), *slot = u64map_find(&w->names, hash);
	bool created;

	if (!slot) {
		slot = w->names.len < MOST_NAMES ? u64map_put(&w->names, hash, &created) : NULL;
		if (slot)
			*slot = (uintptr_t)arena_intern(w->arena, name);
	}
	name = slot && *slot && strcmp((const char *)(uintptr_t)*slot, name) == 0 ? (const char *)(uintptr_t)*slot : NULL;
	return name; /* of two with the same hash the first */
}

void watch_put_place(struct watch_log *w, struct watched_thread *t, const char *name)
{
	uint32_t i = 0;

	t->place_before = t->place;
	t->place = name ? intern(w, name) : NULL;
	while (i < t->nplaces && t->places[i].name != t->place)
		i++;
	if (!t->place || i == WATCH_PLACES) {
		t->elsewhere++;
		return;
	}
	if (i == t->nplaces)
		t->places[t->nplaces++] = (struct watch_place){.name = t->place};
	t->places[i].looks++;
}
