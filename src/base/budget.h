/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_BUDGET_H
#define STAKEOUT_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How much work may go into something that others control: a file can make a loop as long as it likes, and a process
 * can make us go through it once for each of its threads. A loop takes units for what it does, about one for every ten
 * nanoseconds, and gives up when none are left. Not for several threads at once.
 */
struct budget {
	uint64_t left;
	bool refused; /* something was given up; reset it before a call to learn whether it was that one */
};

/* False when that much is not left, and the budget is empty from then on. No budget (NULL) means no limit. */
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

/* For work that goes on as long as somebody watches: adds a share for each turn to what is left, up to `most`. */
static inline void budget_add(struct budget *budget, uint64_t units, uint64_t most)
{
	budget->left = budget->left < most && units < most - budget->left ? budget->left + units : most;
}

#endif
