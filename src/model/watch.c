/* SPDX-License-Identifier: MIT */
#include "model/watch.h"

const char *watch_step_name(enum watch_step step)
{
	static const char *const names[WATCH_STEPS] = {
		[WATCH_FIRST] = "first", [WATCH_STILL] = "still", [WATCH_RETURNED] = "returned", [WATCH_RAN] = "ran"};

	return names[step];
}

const char *watch_verdict_name(enum watch_verdict verdict)
{
	static const char *const names[WATCH_VERDICTS] = {
		[WATCH_UNKNOWN] = "unknown", [WATCH_STUCK] = "stuck", [WATCH_HALTED] = "halted",
		[WATCH_LOOPS] = "returned",  [WATCH_MOVES] = "moves", [WATCH_BUSY] = "busy",
		[WATCH_GONE] = "ended",
	};

	return names[verdict];
}

bool watch_init(struct watch_log *watch)
{
	*watch = (struct watch_log){.arena = arena_create()};
	return watch->arena != NULL;
}

void watch_deinit(struct watch_log *watch)
{
	vec_deinit(&watch->processes);
	vec_deinit(&watch->threads);
	vec_deinit(&watch->ended);
	u64map_deinit(&watch->names);
	notes_deinit(&watch->notes);
	notes_deinit(&watch->all_notes);
	if (watch->arena)
		arena_destroy(watch->arena);
	watch->arena = NULL;
}

const struct watched_process *watch_process(const struct watch_log *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->processes.len; i++)
		if (watch->processes.data[i].pid == pid)
			return &watch->processes.data[i];
	return NULL;
}

/* A thread that is stopped for a moment may be charged for more than there was time for, by a tick. */
static int64_t share(int64_t cpu_ns, uint64_t ns)
{
	enum { WHOLE = 10000 };
	double of = ns ? (double)cpu_ns * WHOLE / (double)ns : 0;

	if (cpu_ns < 0 || !ns)
		return -1;
	return of > WHOLE ? WHOLE : (int64_t)(of + 0.5);
}

int64_t watch_cpu_share(const struct watched_thread *t)
{
	if (t->first.cpu_ns < 0 || t->last.cpu_ns < t->first.cpu_ns)
		return -1;
	return share(t->last.cpu_ns - t->first.cpu_ns, t->last.at_ns - t->first.at_ns);
}

int64_t watch_step_cpu_share(const struct watched_thread *t)
{
	return share(t->step_cpu_ns, t->step_ns);
}

bool watch_has_news(const struct watched_thread *t)
{
	if (!t->seen)
		return false;
	if (t->step == WATCH_FIRST)
		return t->born > 1;
	if (t->before == WATCH_FIRST)
		return t->step != WATCH_STILL;
	return t->place != t->place_before || t->busy != t->was_busy;
}
