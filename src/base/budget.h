/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_BUDGET_H
#define STAKEOUT_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How much work may go into something that others control: a file can make a loop as long as it likes, and a process can
 * make us go through it once for each of its threads. Whoever loops takes units for what he does, about one for ten
 * nanoseconds, and gives up when there are none left. Not for several threads at once.
 */
struct budget {
	uint64_t left;
	bool refused; /* something was given up; who wants to know which of his calls it was resets this */
};

/* False when that much is not left; then nothing is any more. No budget (NULL) is as much as it takes. */
static inline bool budget_take(struct budget *budget, uint64_t units)
{
	if (!budget)
		return true;
	if (units <= budget->left) {
		budget->left -= units;
		return true;
	}
	budget->left = 0;
	budget->refused = true;
	return false;
}

/* For what goes on as long as somebody watches: a share for each turn, and what was not used before, up to `most`. */
static inline void budget_add(struct budget *budget, uint64_t units, uint64_t most)
{
	budget->left = budget->left < most && units < most - budget->left ? budget->left + units : most;
}

#endif
