/* SPDX-License-Identifier: MIT */
#include "watch/verdict.h"

enum { HALTED_AFTER = 2 }; /* steps without a move */

static bool same_stack(const struct watch_look *a, const struct watch_look *b)
{
	return a->stack && a->stack == b->stack;
}

/*
 * What runs uses CPU, and what leaves it is counted as a switch. But the kernel adds the CPU time up only now and then, on some CPUs
 * once a second: who has a CPU runs, whatever the counters say.
 */
static bool is_still(const struct watch_look *before, const struct watch_look *now)
{
	bool same_cpu = before->cpu_ns < 0 || now->cpu_ns < 0 || before->cpu_ns == now->cpu_ns;

	return !now->running && same_cpu && before->nvcsw == now->nvcsw && before->nivcsw == now->nivcsw;
}

enum watch_step watch_step_between(const struct watch_look *before, const struct watch_look *now)
{
	bool known = before->stack && now->stack;

	if (is_still(before, now) && (!known || same_stack(before, now)))
		return WATCH_STILL;
	return now->state != 'R' && same_stack(before, now) ? WATCH_RETURNED : WATCH_RAN;
}

enum watch_verdict watch_verdict_of(const struct watched_thread *t)
{
	uint32_t steps = t->steps[WATCH_STILL] + t->steps[WATCH_RETURNED] + t->steps[WATCH_RAN];

	if (t->ended)
		return WATCH_GONE;
	if (!steps)
		return WATCH_UNKNOWN;
	if (t->steps[WATCH_STILL] == steps)
		return WATCH_STUCK;
	if (t->still >= HALTED_AFTER)
		return WATCH_HALTED;
	if (!t->steps[WATCH_RAN])
		return WATCH_LOOPS;
	return watch_cpu_share(t) < 0 || watch_cpu_share(t) >= WATCH_BUSY_FROM ? WATCH_BUSY : WATCH_MOVES;
}
